// `GradCache` computes the exact gradient of a loss that compares all items, such as a contrastive loss. Only
// one part of the items has a graph at a time. (Gao and others, "Scaling Deep Contrastive Learning Batch Size
// under Memory Limited Setup", 2021.)
//
// First all parts are encoded without a graph, and backward() of the loss stops at the representations. After
// that, each part is encoded again with a graph, and backward() continues from the gradient of the part's
// rows. The method needs a second forward pass, and memory for all representations and their gradients.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/instances/core_ops.hpp"
#include "tally/train/batches.hpp"
#include "tally/train/window.hpp"

namespace tally {

namespace detail {
// Stores the output of each encoder for all items, in the order of the encoders.
template <class S> using Representations = std::vector<Var<Array<S>>>;
}  // namespace detail

// Runs backward() of loss(representations) and returns the loss. encoder(part) returns a row for each item of
// the part. Encoders may share parameters, and the loss may have parameters. The rows must not depend on the
// division into parts. Two calls of an encoder for a part must return the same rows (checked on the CPU).
//
// The result is the gradient of loss(encoder(all items)). The result has the same bits as this gradient if
// kernels sum in a fixed order and an encoder uses each parameter once, and else differs by rounding.
template <class S>
Var<Array<S>> cached_backward(std::size_t parts,
                              const std::vector<std::function<Var<Array<S>>(std::size_t part)>>& encoders,
                              const std::function<Var<Array<S>>(const detail::Representations<S>&)>& loss);

// Adds all parts to the `Window` as one micro-batch, with the count of the loss. Both calls of an encoder for
// a part draw the same dropout masks. Side effects, such as new running statistics, are made only one time.
template <class S>
void add_cached(Window<S>& window, const std::vector<Items>& parts,
                const std::vector<std::function<Var<Array<S>>(const Items&, ForwardPass&)>>& encoders,
                const std::function<Loss<Array<S>>(const detail::Representations<S>&)>& loss,
                const detail::MicroBatchOptions& options = {});

}  // namespace tally
