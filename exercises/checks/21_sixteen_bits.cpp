// Exercise 21, sixteen bits: the answer, the mistakes that are known, and the check.
#include "21_sixteen_bits.hpp"

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

namespace plain {
void add(Sum& to, float x) { to.sum = bf16(to.sum + x); }
}  // namespace plain

namespace wrong_sign {
void add(Sum& to, float x) {
    const float wanted = x - to.lost;
    const float grown = bf16(to.sum + wanted);
    to.lost = wanted - (grown - to.sum);
    to.sum = grown;
}
}  // namespace wrong_sign

namespace loss_not_given_back {
void add(Sum& to, float x) {
    const float grown = bf16(to.sum + x);
    to.lost = x - (grown - to.sum);
    to.sum = grown;
}
}  // namespace loss_not_given_back

namespace loss_piles_up {
void add(Sum& to, float x) {
    const float wanted = x + to.lost;
    const float grown = bf16(to.sum + wanted);
    to.lost += wanted - (grown - to.sum);
    to.sum = grown;
}
}  // namespace loss_piles_up

namespace loss_without_what_was_given_back {
void add(Sum& to, float x) {
    const float wanted = x + to.lost;
    const float grown = bf16(to.sum + wanted);
    to.lost = x - (grown - to.sum);
    to.sum = grown;
}
}  // namespace loss_without_what_was_given_back

namespace sum_changed_too_early {
void add(Sum& to, float x) {
    const float wanted = x + to.lost;
    to.sum = bf16(to.sum + wanted);
    to.lost = wanted - (to.sum - to.sum);
}
}  // namespace sum_changed_too_early

namespace everything_twice {
void add(Sum& to, float x) {
    const float grown = bf16(to.sum + x);
    to.lost += x - (grown - to.sum);
    to.sum = bf16(grown + to.lost);
}
}  // namespace everything_twice

struct Functions {
    decltype(&::add) add;
};

void examine(exercise::Look& look, const Functions& yours) {
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
    {.number = 21,
     .slug = "sixteen-bits",
     .title = "a sum in bfloat16 that does not stop growing",
     .minutes = 10,
     .lesson = "rounding",
     .functions = {"add"},
     .hints = {"If the sum is 256 and you add 1, by how much has bf16(256 + 1) grown, and how much is "
               "therefore missing?",
               "Three steps: what should be added (x with the old loss); the new sum; the new loss, which is "
               "what should be added less what the sum has grown by.",
               "Take the new sum into a variable of its own first: the loss needs both the old and the new "
               "one. Then assign."},
     .why = "One number more makes the error of a sum independent of its length: the loss waits until it is "
            "large enough to be seen. Accumulators of float32 do the same with sixteen bits more; this is "
            "what they buy."},
    examine, Functions{right::add},
    {{"plain",
      {plain::add},
      "The plain sum: at 256 a one is lost to rounding, each time anew, and nobody remembers it."},
     {"wrong_sign",
      {wrong_sign::add},
      "What was lost is taken away instead of given back: the error is doubled, not mended. (In the textbook "
      "the sign stands at the other place.)"},
     {"loss_not_given_back",
      {loss_not_given_back::add},
      "You know what was lost, but never use it: add `lost` to x before x is added."},
     {"loss_piles_up",
      {loss_piles_up::add},
      "The loss is added to the loss of before, which was given back already: it counts twice, and more and "
      "more."},
     {"loss_without_what_was_given_back",
      {loss_without_what_was_given_back::add},
      "The loss must be measured against what should have been added, x with the old loss. You measure it "
      "against x alone, so what could not be given back this time is gone."},
     {"sum_changed_too_early",
      {sum_changed_too_early::add},
      "sum has its new value before you ask by how much it has grown: new minus new is 0, so all of it "
      "counts as lost."},
     {"everything_twice",
      {everything_twice::add},
      "What is lost is added to the sum at once, where it is lost again, and it is still kept: it counts "
      "twice as soon as it fits."}});

}  // namespace
