// Computes the full batch's gradient from micro-batches for a model with one batch-norm layer.
//
//     add_with_exact_batch_norm<float>(window, model, split(batch, 16),
//         [&](const Items& items) { return constant(rows(images, items)); },
//         [&](const auto& y, const Items& items) { return cross_entropy(y, rows(labels, items)); });
//     window.finish();
#pragma once

#include <functional>
#include <vector>

#include "tally/train/batches.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/window.hpp"

namespace tally {

// Call add_with_exact_batch_norm() instead of Window::add(). The function normalises all micro-batches as one
// batch, and makes one update of the running statistics. The `Window` must be empty.
//
// The layer computes y = gain * x̂ + bias with x̂ = (x - mean) / deviation. Mean and deviation depend on all
// N values of x. The gradient of x is dx = gain / deviation * (dy - (Σ dy + x̂ Σ dy x̂) / N). The first term
// of dx depends on one micro-batch only. The second term depends on the sums over all micro-batches, which
// are also the gradients of bias and gain. The layers before the batch norm run forward three times, for the
// statistics, the first term and the second term. The layers after the batch norm run only one time.
//
// Throws if the model has several batch norms, because each batch norm would need the complete statistics of
// the earlier batch norms. Also throws if the batch norm is inside another module.
template <class S> void add_with_exact_batch_norm(
    Window<S>& window, Sequential<S>& model, const std::vector<Items>& micro_batches,
    const std::function<Var<Array<S>>(const Items&)>& input,
    const std::function<Loss<Array<S>>(const Var<Array<S>>& y, const Items&)>& loss);

}  // namespace tally
