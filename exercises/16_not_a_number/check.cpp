// The answer and the check of exercise not-a-number.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
std::vector<double> gradient(const std::vector<Micro>& micros) {
    std::vector<double> sum(micros[0].sum.size());
    int items = 0;
    for (const Micro& micro : micros) {
        bool good = true;
        for (double value : micro.sum) good = good && std::isfinite(value);
        if (!good) continue;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += micro.sum[i];
        items += micro.items;
    }
    if (items == 0) return {};
    for (double& value : sum) value /= items;
    return sum;
}
}  // namespace right

#include "16_not_a_number.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<Micro>& micros) {
        look.with(where);
        std::vector<double> given;
        if (look.runs([&] { given = yours.gradient(micros); }))
            look.equal("gradient", given, right::gradient(micros));
    };
    const double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();
    const Micro good{{2, 4}, 2}, other{{6, 3}, 1};
    look_at("two good micro-batches, of 2 items and of 1", {good, other});
    look_at("a third micro-batch of [NaN NaN]", {good, {{nan, nan}, 3}, other});
    look_at("a third micro-batch of [1 NaN]", {good, {{1, nan}, 3}, other});
    look_at("a third micro-batch of [NaN 1]", {good, {{nan, 1}, 3}, other});
    look_at("a third micro-batch of [infinity 1]", {good, {{inf, 1}, 3}, other});
    look_at("a third micro-batch of [1 -infinity]", {good, other, {{1, -inf}, 3}});
    look_at("only one micro-batch, of [NaN infinity]", {{{nan, inf}, 2}});
    for (int draw = 0; draw < 3; ++draw) {
        std::vector<Micro> micros;
        for (int count = look.whole(3, 5); count > 0; --count)
            micros.push_back({look.uniforms(3), look.whole(1, 4)});
        micros[1].sum[static_cast<std::size_t>(look.whole(0, 2))] = draw == 0 ? nan : inf;
        look_at("random numbers, the second micro-batch of " + std::to_string(micros.size()) + " bad",
                micros);
    }
}

const exercise::Add add(
    {.title = "leave out a micro-batch with NaN or infinity",
     .minutes = 5,
     .lesson = "mean-sum-token",
     .hints = {"If you leave a micro-batch out of the mean, which two sums must not contain it?",
               "At the place of todo(), test all numbers of the micro-batch before you add any of them. "
               "`continue` skips to the next micro-batch. After the loop, handle the case that no items are "
               "left.",
               "Start with a bool that is true, and set it to false if std::isfinite() returns false for a "
               "number of micro.sum. Skip the micro-batch if the bool is false. After the loop, return {} if "
               "items is 0."},
     .why = "A micro-batch that you leave out must be missing in the numerator (the sum) and in the "
            "denominator (the items). Skip the micro-batch, because a multiplication by 0 keeps NaN. "
            "tally's class Window leaves out such a micro-batch if you choose the policy drop_micro."},
    examine, answers);

}  // namespace
