// Once per update.
//
// An update does four things to its gradient, in this order: the mean g over the micro-batches gets the penalty's
// gradient, decay * w, on top; where its norm is larger than max_norm, it is scaled down to max_norm; momentum takes it
// in, v = momentum * v + g; and the weights step, w = w - rate * v. The full batch does that once. So must the micro-batches.
//
// Here everything is done for each micro-batch. Move what belongs to the update out of the loop.
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
