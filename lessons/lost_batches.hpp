// Trains on an epoch in three ways and counts the batches that contribute to an update.
#pragma once

#include "course/kit/window_gradient.hpp"

namespace {
enum class Listing { published, repaired, window };

// The loss of batch i is the number w[i], so w[i] changes if batch i contributes to an update.
inline std::int64_t batches_used(Listing listing, std::int64_t batches, std::int64_t every) {
    const Tensor w = zeros({batches}), nothing = Array<real>::zeros({}, options().device);
    Sgd<real> sgd({w}, {.learning_rate = 1});
    Window<real> window(sgd, {.micro_batches = every});
    Tensor total = nothing;
    for (std::int64_t i = 0; i < batches; ++i) {
        const Tensor batch = slice(w, 0, i, i + 1);
        if (listing == Listing::window) {
            window.add(Loss(batch));
            if (window.full()) window.finish();
            continue;
        }
        const Tensor loss = sum(batch);
        total = total + loss;
        if ((i + 1) % every != 0) continue;
        (listing == Listing::published ? loss : total / every).backward();
        sgd.step();
        sgd.zero_grad();
        total = nothing;
    }
    if (listing == Listing::window) window.flush();
    const std::vector<real> moved = w.value().to_vector();
    return batches - std::count(moved.begin(), moved.end(), real(0));
}
}  // namespace
