// The answer and the check of exercise sixteen-bits.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
void add(Sum& to, float x) {
    const float wanted = x + to.lost;
    const float grown = bf16(to.sum + wanted);
    to.lost = wanted - (grown - to.sum);
    to.sum = grown;
}
}  // namespace right

#include "11_sixteen_bits.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<float>& addends, double tolerance) {
        look.with(where);
        Sum sum;
        double exact = 0;
        const bool ran = look.runs([&] {
            for (const float x : addends) {
                exact += x;
                yours.add(sum, x);
                sum = {bf16(sum.sum), bf16(sum.lost)};
            }
        });
        if (!ran) return;
        look.equal("sum", sum.sum, exact, tolerance);
        look.equal("sum, with what is lost", sum.sum + sum.lost, exact, tolerance);
    };
    const double rounding = 1.0 / 256;  // half of the last of 8 bits
    look_at("five ones", {1, 1, 1, 1, 1}, 0);
    look_at("300 ones, which a plain sum counts as 256", std::vector<float>(300, 1), rounding);
    look_at("5000 ones", std::vector<float>(5000, 1), rounding);
    for (int draw = 0; draw < 3; ++draw) {
        std::vector<float> addends;
        for (int i = 0; i < 3000; ++i) addends.push_back(bf16(static_cast<float>(look.uniform(0, 1))));
        look_at("3000 random numbers from 0 to 1", addends, 2 * rounding);
    }
}

const exercise::Add add_to_the_course(
    {.title = "a sum in bfloat16 that does not stop growing",
     .minutes = 10,
     .lesson = "rounding",
     .hints = {"If the sum is 256 and you add 1, by how much has bf16(256 + 1) grown, and how much is "
               "therefore missing?",
               "Three steps: what should be added (x with the old loss); the new sum; the new loss, which is "
               "what should be added less what the sum has grown by.",
               "Take the new sum into a variable of its own first: the loss needs both the old and the new "
               "one. Then assign."},
     .why = "One number more makes the error of a sum independent of its length: the loss waits until it is "
            "large enough to be seen. Accumulators of float32 do the same with sixteen bits more; this is "
            "what they buy."},
    examine, answers);

}  // namespace
