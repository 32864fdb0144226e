// Declares explicit instantiations, as in core_ops.hpp, for the operations that layers use.
#pragma once

#include <cstdint>
#include <optional>

#include "tally/autograd/instances/core_ops.hpp"
#include "tally/autograd/ops/batch_norm.hpp"
#include "tally/autograd/ops/conv.hpp"
#include "tally/autograd/ops/dropout.hpp"
#include "tally/autograd/ops/embedding.hpp"
#include "tally/autograd/ops/layer_norm.hpp"
#include "tally/autograd/ops/where.hpp"

// clang-format off
#define TALLY_LAYER_INSTANCES(EXTERN, S) \
    EXTERN template Var<Array<S>> layer_norm(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>, double); \
    EXTERN template detail::BatchNormResult<S> batch_norm(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>, double); \
    EXTERN template Var<Array<S>> batch_norm(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>, const RunningStatistics<S>&, double); \
    EXTERN template Var<Array<S>> conv2d(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>, std::int64_t, std::int64_t); \
    EXTERN template Var<Array<S>> conv2d(Var<Array<S>>, Var<Array<S>>, std::int64_t, std::int64_t); \
    EXTERN template Var<Array<S>> max_pool2d(Var<Array<S>>, std::int64_t, std::int64_t); \
    EXTERN template Var<Array<S>> embedding(Var<Array<S>>, const Array<std::int32_t>&, std::optional<std::int64_t>); \
    EXTERN template Var<Array<S>> dropout(Var<Array<S>>, double, const detail::DropoutKey&); \
    EXTERN template Var<Array<S>> where(const Array<std::int32_t>&, Var<Array<S>>, Var<Array<S>>);
// clang-format on

namespace tally {

TALLY_LAYER_INSTANCES(extern, float)
TALLY_LAYER_INSTANCES(extern, double)

}  // namespace tally
