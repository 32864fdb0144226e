// Batch norm over a whole window, exactly: the full batch's gradient from micro-batches, for a model with
// one batch-norm layer.
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

// Instead of add() for each micro-batch: together they are normalised as one batch. Its running statistics
// take in that batch. The window must hold no others.
//
// y = gain * x̂ + bias with x̂ = (x - mean) / deviation, where mean and deviation depend on all N values x
// of the window. Hence dx = gain / deviation * (dy - (Σ dy + x̂ Σ dy x̂) / N): a part that knows its own
// micro-batch only, and a part that knows the sums over all, which are also the gradients of bias and
// gain. So the layers before it run forward three times: for the statistics, without a graph; with the
// rest of the model, where the first part goes backward; and once more for the second part. The layers
// behind it run once.
//
// Refuses, in words, a model with more such layers (each would need the window's statistics, and the
// gradients through them, before the next can begin), and one that has it inside another module.
template <class S> void add_with_exact_batch_norm(
    Window<S>& window, Sequential<S>& model, const std::vector<Items>& micro_batches,
    const std::function<Var<Array<S>>(const Items&)>& input,
    const std::function<Loss<Array<S>>(const Var<Array<S>>& y, const Items&)>& loss);

}  // namespace tally
