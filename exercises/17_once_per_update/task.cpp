// Repair an update that applies four of its five steps once for each micro-batch.
//
// An update from the full batch has five steps:
//     1. g is the mean gradient.
//     2. The penalty adds its gradient:  g = g + decay * w.
//     3. The clip scales g down to the norm max_norm, if the norm of g is larger.
//     4. Momentum adds the gradient:  v = momentum * v + g.
//     5. The weights change:  w = w - rate * v.
//
// N micro-batches must make the same update as the full batch. `micros` contains the mean gradients of N
// micro-batches of equal sizes. The code below does steps 2 to 5 (penalty, clip, momentum, change of the
// weights) for each micro-batch. Move the steps so that the code makes the same update as the full batch.
//
// Example: the mean gradients of two micro-batches are [2 0] and [0 2], and max_norm is 1. Their mean [1 1]
// is clipped to [0.707 0.707].
//
// The question: which of the five steps can you do in N parts, one for each micro-batch?
//
// Given:
//     using Numbers = std::vector<double>;
//     struct State { Numbers w, v; };   // the weights and their momentum
//     struct Options { double rate, momentum, decay, max_norm; };
//     double norm(const Numbers& g);    // the square root of the sum of squares
#include "given.hpp"

void update(State& state, const std::vector<Numbers>& micros, const Options& options) {
    for (const Numbers& micro : micros) {
        Numbers g = micro;
        for (std::size_t i = 0; i < g.size(); ++i) {
            g[i] /= static_cast<double>(micros.size());
            g[i] += options.decay * state.w[i];
        }
        const double scale = std::min(1.0, options.max_norm / norm(g));
        for (std::size_t i = 0; i < g.size(); ++i) {
            state.v[i] = options.momentum * state.v[i] + scale * g[i];
            state.w[i] -= options.rate * state.v[i];
        }
    }
}
