// The answer and the check of exercise noise-scale.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
double noise_scale(const std::vector<Norms>& windows, int b, int n) {
    double traces = 0, squares = 0;
    for (const auto& [first, whole] : windows) {
        const double trace = (first - whole) / (1.0 / b - 1.0 / (n * b));
        const double square = whole - trace / (n * b);
        traces += trace;
        squares += square;
    }
    return traces / squares;
}
}  // namespace right

#include "27_noise_scale.mistakes.hpp"

// A window of items whose numbers are spread evenly from c - 1 to c + 1: each has the variance 1/3.
Norms drawn(exercise::AnswerTest& look, int b, int n, double c, std::size_t numbers) {
    const auto square = [](const exercise::Numbers& g) {
        return std::inner_product(g.begin(), g.end(), g.begin(), 0.0);
    };
    exercise::Numbers first(numbers), whole(numbers);
    for (int micro = 0; micro < n; ++micro)
        for (int item = 0; item < b; ++item) {
            const auto g = look.uniforms(numbers, c - 1, c + 1);
            for (std::size_t i = 0; i < numbers; ++i) {
                whole[i] += g[i] / (n * b);
                if (micro == 0) first[i] += g[i] / b;
            }
        }
    return {square(first), square(whole)};
}

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::vector<Norms>& windows, int b, int n,
                             double expected, double tolerance = exercise::usual_tolerance) {
        look.with(where);
        double given = 0;
        if (look.runs([&] { given = yours.noise_scale(windows, b, n); }))
            look.equal("noise scale", given, expected, tolerance);
    };
    look_at("one window of 2 x 10 items, |g|^2 110 and 60: tr = 1000, |G|^2 = 10", {{110, 60}}, 10, 2, 100);
    look_at("two windows of 2 x 10, |g|^2 150 and 70, 70 and 50: tr 1600 and 400, |G|^2 -10 and 30",
            {{150, 70}, {70, 50}}, 10, 2, 100);
    look_at("one window of 4 x 5 items, |g|^2 8.2 and 2.2: tr = 40, |G|^2 = 0.2", {{8.2, 2.2}}, 5, 4, 200);
    // Independent check: items with known noise. The tolerance is five standard deviations of the mean.
    for (const auto& [b, n] : {std::pair{2, 2}, {4, 3}}) {
        std::vector<Norms> windows;
        for (int draw = 0; draw < 4000; ++draw) windows.push_back(drawn(look, b, n, 0.25, 8));
        look_at("4000 windows of " + std::to_string(n) + " x " + std::to_string(b) +
                    " random items with the noise scale 16/3",
                windows, b, n, 16.0 / 3, 0.15);
    }
}

const exercise::Add add(
    {.title = "the noise scale, from two norms in each update",
     .minutes = 10,
     .lesson = "what-the-noise-says",
     .hints = {"The mean gradient over n micro-batches of b items has the squared norm `whole`. On average, "
               "`whole` is |G|^2 + tr / (n * b), where G is the true gradient and tr is the variance of one "
               "item's gradient. If you know tr, how do you compute |G|^2 from `whole`?",
               "At the place of todo() you know `trace`, the estimate of the variance tr. `whole` is the "
               "squared norm of the update's mean gradient: subtract the part that is noise. Add the "
               "difference, an estimate of |G|^2, to `squares`. After the loop, divide the sum `traces` by "
               "the sum `squares`.",
               "An update has n micro-batches of b items, so the noise of its mean gradient is the variance "
               "`trace`, divided by n * b. After the loop, the result is `traces`, the sum of the variances, "
               "divided by `squares`, the sum of the squared norms."},
     .why = "The sums of the variance tr and the squared norm |G|^2 are right on average, so their quotient "
            "is close to the true noise scale. The mean of the quotients of single updates is not close: an "
            "update with |G|^2 near 0 outweighs all others."},
    examine, answers);

}  // namespace
