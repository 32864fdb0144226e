// GradCache computes the exact gradient of a loss that compares all items, such as a contrastive loss, with
// the graph of one part at a time. (Gao and others, "Scaling Deep Contrastive Learning Batch Size under
// Memory Limited Setup", 2021.)
//
// All parts are encoded without a graph, and backward() of the loss stops at their representations. Then each
// part is encoded again, with a graph, and backward() continues from its rows of that gradient. This costs a
// second forward pass, and memory for all representations and their gradient.
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
// The output of each encoder for all items, in order.
template <class S> using Representations = std::vector<Var<Array<S>>>;
}  // namespace detail

// Runs backward() of loss(representations) and returns the loss. encoder(part) encodes a part and returns a
// row for each of its items. Encoders may share parameters, and the loss may have parameters. The result of
// an encoder must not depend on how items are divided into parts, and must be the same both times, which is
// checked on the CPU.
//
// The gradient is the one of loss(encoder(all items)). With ordered kernels it has the same bits if an
// encoder uses each of its parameters once, and otherwise it differs by rounding.
template <class S>
Var<Array<S>> cached_backward(std::size_t parts,
                              const std::vector<std::function<Var<Array<S>>(std::size_t part)>>& encoders,
                              const std::function<Var<Array<S>>(const detail::Representations<S>&)>& loss);

// Adds all parts to the window as one micro-batch, with the count of the loss. Both encodings of an item have
// the same masks, and effects happen once.
template <class S>
void add_cached(Window<S>& window, const std::vector<Items>& parts,
                const std::vector<std::function<Var<Array<S>>(const Items&, ForwardPass&)>>& encoders,
                const std::function<Loss<Array<S>>(const detail::Representations<S>&)>& loss,
                const detail::MicroBatchOptions& options = {});

}  // namespace tally
