// The noise scale, from two norms of each window.
//
// A mean over b items has the expected square |G|^2 + tr/b: the truth's, and the noise of one item divided by b. A window
// has two such means anyway: of its first micro-batch, over b items, and of all n micro-batches. Two equations, two
// unknowns, tr and |G|^2. The noise scale is tr / |G|^2: with so many items noise and gradient are alike.
//
// Return it from many windows. In a single one the estimate of |G|^2 may well be below 0, and that is no mistake: what is
// right on average is too small now and then. So estimates are summed first, and divided once. Here the second of the two
// is still missing, and what is returned is no noise scale.
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
