// Gradients cached at the representations: the exact gradient of a loss in which all items meet, such as a
// contrastive one, with the graph of one part at a time. (Gao and others, "Scaling Deep Contrastive Learning
// Batch Size under Memory Limited Setup", 2021.)
//
// All parts are encoded without a graph. The loss is taken of all representations together, and goes backward
// to these. Then each part is encoded again, with a graph, and goes backward from its rows of that gradient.
// This costs one forward more for each part, and the representations of all items with their gradient.
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
// What each encoder has made of all items, in their order.
template <class S> using Representations = std::vector<Var<Array<S>>>;
}  // namespace detail

// backward() of loss(representations), where encoder(part) encodes a part: a row for each of its items. Any
// number of encoders; they may share parameters, and the loss may have some of its own. An encoder must not
// see how its items were cut into parts, and gives the same numbers both times: on the CPU that is looked at.
// Returns the loss.
//
// The gradient is that of loss(encoder(everything)): with ordered kernels the same bits, where an encoder
// uses each of its parameters once; else to rounding.
template <class S>
Var<Array<S>> cached_backward(std::size_t parts,
                              const std::vector<std::function<Var<Array<S>>(std::size_t part)>>& encoders,
                              const std::function<Var<Array<S>>(const detail::Representations<S>&)>& loss);

// The same as one micro-batch of a window, however it was cut: weighed and counted by what the loss counts.
// Items have the same masks both times, effects happen once.
template <class S>
void add_cached(Window<S>& window, const std::vector<Items>& parts,
                const std::vector<std::function<Var<Array<S>>(const Items&, ForwardPass&)>>& encoders,
                const std::function<Loss<Array<S>>(const detail::Representations<S>&)>& loss,
                const MicroBatchOptions& options = {});

}  // namespace tally
