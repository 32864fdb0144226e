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

#include "13_sixteen_bits.mistakes.hpp"

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
        look.equal("sum + lost", sum.sum + sum.lost, exact, tolerance);
    };
    const double rounding = 1.0 / 256;  // half of the last of the 8 bits
    look_at("five ones", {1, 1, 1, 1, 1}, 0);
    look_at("300 ones, for which a plain sum gives 256", std::vector<float>(300, 1), rounding);
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
     .hints =
         {"The sum is 256 and you add 1. How much larger than 256 is bf16(256 + 1), and how much of the 1 is "
          "lost?",
          "add() needs three steps. The first step adds the old to.lost to x. The second step computes the "
          "new sum. The third step computes the new to.lost from the old sum, the new sum and the result of "
          "the first step.",
          "Keep the new sum in a local variable, and also the amount to add: x plus to.lost, the amount that "
          "rounding has lost. The new to.lost is the amount to add minus the growth of the sum. Assign "
          "to.lost and to.sum at the end."},
     .why = "A second number, to.lost, keeps the error of a sum small, however many numbers you add: the "
            "lost amount waits until it is large enough to change the sum. A single sum in float32 also has "
            "a small error, and needs as many bits as the two bfloat16 numbers."},
    examine, answers);

}  // namespace
