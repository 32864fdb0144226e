// The families of fast kernels; each fills its own slots of the table, for float and double.
#pragma once

#include "tally/kernels/kernels.hpp"

namespace tally::cpu {

// clang-format off
template <class S> void install_elementwise(Kernels<S>&);
template <class S> void install_memory(Kernels<S>&);
template <class S> void install_reduce(Kernels<S>&);
template <class S> void install_softmax(Kernels<S>&);
template <class S> void install_matmul(Kernels<S>&);
template <class S> void install_loss(Kernels<S>&);
template <class S> void install_norm(Kernels<S>&);
template <class S> void install_update(Kernels<S>&);
template <class S> void install_batch_norm(Kernels<S>&);
template <class S> void install_dropout(Kernels<S>&);
template <class S> void install_windows(Kernels<S>&);
// clang-format on

}  // namespace tally::cpu
