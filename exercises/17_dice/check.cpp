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

#include "17_dice.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<Micro>& micros) {
        look.with(where);
        std::vector<double> given;
        if (look.runs([&] { given = yours.dice_gradients(micros); }))
            look.equal("gradients", given, right::dice_gradients(micros));
    };
    look_at("all four pixels in one micro-batch", {{{0.9, 0.2, 0.6, 0.1}, {1, 0, 1, 0}}});
    look_at("the same four in two micro-batches", {{{0.9, 0.2}, {1, 0}}, {{0.6, 0.1}, {1, 0}}});
    look_at("all that is true in the first micro-batch", {{{0.9, 0.6}, {1, 1}}, {{0.2, 0.1}, {0, 0}}});
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
    {.title = "a loss that is a ratio of sums, exact in micro-batches",
     .minutes = 10,
     .lesson = "when-it-lies",
     .hints = {"The formula for d loss / d p names I and D. Over which pixels are these two sums taken?",
               "Two loops over the micro-batches, one after the other: the second one can begin only when "
               "the first one has seen all of them.",
               "Take I and D out of the loop, so that they begin at 0 once; close the loop behind the sums, "
               "and open a second one for the gradients."},
     .why =
         "Two numbers are all that the micro-batches must know of each other. A first pass without a graph "
         "finds them, a second one makes gradients with them: exact, for the price of one more forward. "
         "Contrastive losses are made exact in the same way, with representations instead of two numbers."},
    examine, answers);

}  // namespace
