// Complete a function that computes the noise scale from two norms of each update.
//
// G is the true gradient, and tr is the variance of one item's gradient, summed over all its numbers. The
// mean gradient over b items has, on average, the squared norm |G|^2 + tr / b. Each update uses a window of n
// micro-batches of b items. So each update gives two squared norms:
//     first = |G|^2 + tr / b          of the mean gradient over the first micro-batch
//     whole = |G|^2 + tr / (n * b)    of the mean gradient over all n micro-batches
// The formulas of `first` and `whole` are two equations with the unknown numbers tr and |G|^2. The code below
// solves them for tr. Solve them for |G|^2.
//
// Return the noise scale tr / |G|^2 of many updates: the variance divided by the squared norm of the true
// gradient. Divide the sum of all estimates of tr by the sum of all estimates of |G|^2. In a single update
// the estimate of |G|^2 can be negative. A negative estimate is not an error: keep it.
//
// Example: an update has n = 2 micro-batches of b = 10 items. The mean gradient has the squared norm
// first = 110 over the first micro-batch, and whole = 60 over both micro-batches. Then tr is 1000, |G|^2 is
// 10, and the result is 100.
//
// The question: which part of `whole`, the squared norm of the update's mean gradient, is noise, and does not
// belong to |G|^2?
//
// Given:
//     struct Norms { double first, whole; };   // the two squared norms of one update
#include "given.hpp"

double noise_scale(const std::vector<Norms>& windows, int b, int n) {
    double traces = 0, squares = 0;
    for (const auto& [first, whole] : windows) {
        const double trace = (first - whole) / (1.0 / b - 1.0 / (n * b));
        traces += trace;
        todo();
    }
    return traces;
}
