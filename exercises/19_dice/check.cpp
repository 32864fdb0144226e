// The answer and the check of exercise dice.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
std::vector<double> dice_gradients(const std::vector<Micro>& micros) {
    double I = 0, D = 0;
    for (const Micro& micro : micros)
        for (std::size_t i = 0; i < micro.p.size(); ++i) {
            I += micro.p[i] * micro.t[i];
            D += micro.p[i] + micro.t[i];
        }
    std::vector<double> gradients;
    for (const Micro& micro : micros)
        for (double t : micro.t) gradients.push_back(-2 * t / D + 2 * I / (D * D));
    return gradients;
}
}  // namespace right

#include "19_dice.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<Micro>& micros) {
        look.with(where);
        std::vector<double> given;
        if (look.runs([&] { given = yours.dice_gradients(micros); }))
            look.equal("gradients", given, right::dice_gradients(micros));
    };
    look_at("all four pixels in one micro-batch", {{{0.9, 0.2, 0.6, 0.1}, {1, 0, 1, 0}}});
    look_at("the same four pixels in two micro-batches", {{{0.9, 0.2}, {1, 0}}, {{0.6, 0.1}, {1, 0}}});
    look_at("both pixels with t = 1 in the first micro-batch", {{{0.9, 0.6}, {1, 1}}, {{0.2, 0.1}, {0, 0}}});
    for (int draw = 0; draw < 4; ++draw) {
        std::vector<Micro> micros(static_cast<std::size_t>(look.whole(2, 4)));
        for (Micro& micro : micros)
            for (int pixels = look.whole(1, 5); pixels > 0; --pixels) {
                micro.p.push_back(look.uniform(0.05, 1));
                micro.t.push_back(look.whole(0, 1));
            }
        look_at("random pixels in " + std::to_string(micros.size()) + " micro-batches", micros);
    }
}

const exercise::Add add(
    {.title = "a loss that is a ratio of sums, computed exactly in micro-batches",
     .minutes = 10,
     .lesson = "when-it-lies",
     .hints = {"The derivative d loss / d p contains the sums I and D. Over which pixels does the loss "
               "compute I and D?",
               "Look at the braces of the loop over micro-batches. The gradients need the complete sums I "
               "and D, so write two loops over the micro-batches.",
               "Declare the sums I and D before the first loop, so that both start at 0 only once. Close "
               "the first loop after the lines that add to I and D. Compute the gradients in a second "
               "loop over the micro-batches."},
     .why = "A micro-batch needs only two numbers from the other micro-batches: their parts of the sums I "
            "and D. A first pass over the micro-batches, without a graph, computes I and D, and a second "
            "pass computes exact gradients. The price is one more forward pass."},
    examine, answers);

}  // namespace
