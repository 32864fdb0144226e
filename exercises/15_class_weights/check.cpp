// The answer and the check of exercise class-weights.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
double gradient(const std::vector<Micro>& micros, const std::vector<double>& weight) {
    double top = 0, bottom = 0;
    for (const Micro& micro : micros)
        for (const Item& item : micro) {
            const double w = weight[static_cast<std::size_t>(item.label)];
            top += w * item.gradient;
            bottom += w;
        }
    return top / bottom;
}
}  // namespace right

#include "15_class_weights.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<Micro>& micros,
                             const std::vector<double>& weight) {
        look.with(where);
        double given = 0;
        if (look.runs([&] { given = yours.gradient(micros, weight); }))
            look.equal("gradient", given, right::gradient(micros, weight));
    };
    look_at("weights 1 and 9, all four items in one micro-batch", {{{0, 1}, {0, 2}, {0, 3}, {1, 8}}}, {1, 9});
    look_at("weights 1 and 9, the one rare item in the second of two micro-batches",
            {{{0, 1}, {0, 2}}, {{0, 3}, {1, 8}}}, {1, 9});
    look_at("weights 1 and 9, the rare item alone in its micro-batch", {{{0, 1}, {0, 2}, {0, 3}}, {{1, 8}}},
            {1, 9});
    look_at("equal weights of 2, two micro-batches of 2 items", {{{0, 1}, {1, 2}}, {{0, 3}, {1, 8}}}, {2, 2});
    for (int draw = 0; draw < 4; ++draw) {
        std::vector<Micro> micros(static_cast<std::size_t>(look.whole(2, 4)));
        for (Micro& micro : micros)
            for (int items = look.whole(1, 5); items > 0; --items)
                micro.push_back({look.whole(0, 2), look.uniform(-1, 1)});
        look_at("random items of three classes in " + std::to_string(micros.size()) + " micro-batches",
                micros, look.uniforms(3, 0.5, 5));
    }
}

const exercise::Add add(
    {.title = "a weighted mean in micro-batches",
     .minutes = 5,
     .lesson = "mean-sum-token",
     .hints =
         {"A rare item has the weight 9. How much must this item add to the denominator of the weighted "
          "mean?",
          "Compute two sums over all micro-batches, as in exercise tokens: the numerator and the denominator "
          "of the mean. What does one item add to each of the two sums?",
          "Each item adds its weight times its gradient to the numerator, and its weight to the denominator. "
          "Divide the numerator by the denominator once, after the loops over micro-batches and items."},
     .why = "The denominator of a weighted mean is the sum of the weights of all items in all micro-batches, "
            "so no micro-batch may divide by the sum of its own weights."},
    examine, answers);

}  // namespace
