// Exercise 10, a ratio: the answer, the mistakes that are known, and the check.
#include "10_dice.hpp"

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

namespace ratio_of_each {
std::vector<double> dice_gradients(const std::vector<Micro>& micros) {
    std::vector<double> gradients;
    for (const Micro& micro : micros) {
        double I = 0, D = 0;
        for (std::size_t i = 0; i < micro.p.size(); ++i) {
            I += micro.p[i] * micro.t[i];
            D += micro.p[i] + micro.t[i];
        }
        for (double t : micro.t) gradients.push_back(-2 * t / D + 2 * I / (D * D));
    }
    return gradients;
}
}  // namespace ratio_of_each

namespace mean_of_ratios {
std::vector<double> dice_gradients(const std::vector<Micro>& micros) {
    std::vector<double> gradients;
    for (const Micro& micro : micros) {
        double I = 0, D = 0;
        for (std::size_t i = 0; i < micro.p.size(); ++i) {
            I += micro.p[i] * micro.t[i];
            D += micro.p[i] + micro.t[i];
        }
        for (double t : micro.t)
            gradients.push_back((-2 * t / D + 2 * I / (D * D)) / static_cast<double>(micros.size()));
    }
    return gradients;
}
}  // namespace mean_of_ratios

namespace sums_so_far {
std::vector<double> dice_gradients(const std::vector<Micro>& micros) {
    std::vector<double> gradients;
    double I = 0, D = 0;
    for (const Micro& micro : micros) {
        for (std::size_t i = 0; i < micro.p.size(); ++i) {
            I += micro.p[i] * micro.t[i];
            D += micro.p[i] + micro.t[i];
        }
        for (double t : micro.t) gradients.push_back(-2 * t / D + 2 * I / (D * D));
    }
    return gradients;
}
}  // namespace sums_so_far

namespace denominator_is_constant {
std::vector<double> dice_gradients(const std::vector<Micro>& micros) {
    double D = 0;
    for (const Micro& micro : micros)
        for (std::size_t i = 0; i < micro.p.size(); ++i) D += micro.p[i] + micro.t[i];
    std::vector<double> gradients;
    for (const Micro& micro : micros)
        for (double t : micro.t) gradients.push_back(-2 * t / D);
    return gradients;
}
}  // namespace denominator_is_constant

namespace only_the_denominator_of_all {
std::vector<double> dice_gradients(const std::vector<Micro>& micros) {
    double D = 0;
    for (const Micro& micro : micros)
        for (std::size_t i = 0; i < micro.p.size(); ++i) D += micro.p[i] + micro.t[i];
    std::vector<double> gradients;
    for (const Micro& micro : micros) {
        double I = 0;
        for (std::size_t i = 0; i < micro.p.size(); ++i) I += micro.p[i] * micro.t[i];
        for (double t : micro.t) gradients.push_back(-2 * t / D + 2 * I / (D * D));
    }
    return gradients;
}
}  // namespace only_the_denominator_of_all

namespace last_micro_batch_missing {
std::vector<double> dice_gradients(const std::vector<Micro>& micros) {
    double I = 0, D = 0;
    std::vector<double> gradients;
    for (const Micro& micro : micros) {
        I = D = 0;
        for (std::size_t i = 0; i < micro.p.size(); ++i) {
            I += micro.p[i] * micro.t[i];
            D += micro.p[i] + micro.t[i];
        }
    }
    for (const Micro& micro : micros)
        for (double t : micro.t) gradients.push_back(-2 * t / D + 2 * I / (D * D));
    return gradients;
}
}  // namespace last_micro_batch_missing

struct Functions {
    decltype(&::dice_gradients) dice_gradients;
};

void examine(exercise::Look& look, const Functions& yours) {
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
    {.number = 10,
     .slug = "dice",
     .title = "a loss that is a ratio of sums, exact in micro-batches",
     .minutes = 10,
     .lesson = "when-it-lies",
     .functions = {"dice_gradients"},
     .hints = {"The formula for d loss / d p names I and D. Over which pixels are these two sums taken?",
               "Two loops over the micro-batches, one after the other: the second one can begin only when "
               "the first one has seen all of them.",
               "Take I and D out of the loop, so that they begin at 0 once; close the loop behind the sums, "
               "and open a second one for the gradients."},
     .why =
         "Two numbers are all that the micro-batches must know of each other. A first pass without a graph "
         "finds them, a second one makes gradients with them: exact, for the price of one more forward. "
         "Contrastive losses are made exact in the same way, with representations instead of two numbers."},
    examine, Functions{right::dice_gradients},
    {{"ratio_of_each",
      {ratio_of_each::dice_gradients},
      "Each micro-batch has a ratio of its own here, and these are added: that is another loss, and a larger "
      "one."},
     {"mean_of_ratios",
      {mean_of_ratios::dice_gradients},
      "This is the mean of the micro-batches' ratios: divided, as one learns it, and still another loss. A "
      "ratio of sums is no mean of ratios."},
     {"sums_so_far",
      {sums_so_far::dice_gradients},
      "I and D run on over the micro-batches, but the first ones are given their gradients before the sums "
      "are complete. It takes two passes."},
     {"denominator_is_constant",
      {denominator_is_constant::dice_gradients},
      "You have left out the second term: D depends on p as well, and a larger p makes the ratio smaller by "
      "it."},
     {"only_the_denominator_of_all",
      {only_the_denominator_of_all::dice_gradients},
      "D is that of all pixels, but I is still the micro-batch's own. Both sums belong to the whole."},
     {"last_micro_batch_missing",
      {last_micro_batch_missing::dice_gradients},
      "There are two passes, but the sums begin anew in each micro-batch: what is left is the last one's I "
      "and D."}});

}  // namespace
