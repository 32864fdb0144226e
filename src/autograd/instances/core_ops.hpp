// Declares the instantiations for arrays of float and double that core_ops_*.cpp compile for all programs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <span>
#include <vector>

#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"

// clang-format off
#define TALLY_NUMBER_INSTANCES(EXTERN, S, N) \
    EXTERN template Var<Array<S>> operator+(Var<Array<S>>, N); \
    EXTERN template Var<Array<S>> operator+(N, Var<Array<S>>); \
    EXTERN template Var<Array<S>> operator-(Var<Array<S>>, N); \
    EXTERN template Var<Array<S>> operator-(N, Var<Array<S>>); \
    EXTERN template Var<Array<S>> operator*(Var<Array<S>>, N); \
    EXTERN template Var<Array<S>> operator*(N, Var<Array<S>>); \
    EXTERN template Var<Array<S>> operator/(Var<Array<S>>, N); \
    EXTERN template Var<Array<S>> operator/(N, Var<Array<S>>); \
    EXTERN template Var<Array<S>> pow(Var<Array<S>>, N);

#define TALLY_CORE_INSTANCES(EXTERN, S) \
    EXTERN template class detail::ValueNode<Array<S>>; \
    EXTERN template class Var<Array<S>>; \
    EXTERN template class detail::OpInfoOf<Array<S>>; \
    EXTERN template class detail::CheckpointProxyNode<Array<S>>; \
    EXTERN template class backward_check::BackwardCheck<Array<S>>; \
    EXTERN template Var<Array<S>> detail::make_constant_result(const char*, Array<S>&&); \
    EXTERN template Var<Array<S>> detail::intercept(const char*, Array<S>&, std::span<detail::ValueNode<Array<S>>* const>, std::span<const detail::SavedRef>, std::optional<std::uint64_t>); \
    EXTERN template Var<Array<S>> parameter(Array<S>); \
    EXTERN template Var<Array<S>> parameter(std::initializer_list<S>); \
    EXTERN template Var<Array<S>> parameter(const Var<Array<S>>&); \
    EXTERN template Var<Array<S>> constant(Array<S>); \
    EXTERN template Var<Array<S>> constant(std::initializer_list<S>); \
    EXTERN template Var<Array<S>> constant(const Var<Array<S>>&); \
    EXTERN template std::vector<Array<S>> detail::gradients(const Var<Array<S>>&, const Array<S>*, const std::vector<Var<Array<S>>>&); \
    EXTERN template Var<Array<S>> full(const Shape&, double, const detail::TensorOptions&); \
    EXTERN template Var<Array<S>> arange(std::int64_t, const detail::TensorOptions&); \
    EXTERN template Var<Array<S>> eye(std::int64_t, const detail::TensorOptions&); \
    EXTERN template Var<Array<S>> randn(const Shape&, const detail::TensorOptions&); \
    EXTERN template Var<Array<S>> uniform(const Shape&, double, double, const detail::TensorOptions&); \
    EXTERN template std::ostream& operator<<(std::ostream&, const Var<Array<S>>&); \
    EXTERN template void sgd_step(const std::vector<Var<Array<S>>>&, double); \
    EXTERN template Var<Array<S>> operator+(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> operator-(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> operator*(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> operator/(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> pow(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> maximum(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> minimum(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> detail::squared_difference(Var<Array<S>>, Var<Array<S>>); \
    TALLY_NUMBER_INSTANCES(EXTERN, S, int) \
    TALLY_NUMBER_INSTANCES(EXTERN, S, float) \
    TALLY_NUMBER_INSTANCES(EXTERN, S, double) \
    EXTERN template Var<Array<S>> operator-(Var<Array<S>>); \
    EXTERN template Var<Array<S>> exp(Var<Array<S>>); \
    EXTERN template Var<Array<S>> log(Var<Array<S>>); \
    EXTERN template Var<Array<S>> log1p(Var<Array<S>>); \
    EXTERN template Var<Array<S>> expm1(Var<Array<S>>); \
    EXTERN template Var<Array<S>> softplus(Var<Array<S>>); \
    EXTERN template Var<Array<S>> silu(Var<Array<S>>); \
    EXTERN template Var<Array<S>> sqrt(Var<Array<S>>); \
    EXTERN template Var<Array<S>> tanh(Var<Array<S>>); \
    EXTERN template Var<Array<S>> sigmoid(Var<Array<S>>); \
    EXTERN template Var<Array<S>> relu(Var<Array<S>>); \
    EXTERN template Var<Array<S>> gelu(Var<Array<S>>); \
    EXTERN template Var<Array<S>> abs(Var<Array<S>>); \
    EXTERN template Var<Array<S>> sin(Var<Array<S>>); \
    EXTERN template Var<Array<S>> cos(Var<Array<S>>); \
    EXTERN template Var<Array<S>> clamp(Var<Array<S>>, double, double); \
    EXTERN template Var<Array<S>> matmul(Var<Array<S>>, Var<Array<S>>, const detail::TransposeOptions&); \
    EXTERN template Var<Array<S>> linear(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> linear_relu(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> linear(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Var<Array<S>> reshape(Var<Array<S>>, const Shape&); \
    EXTERN template Var<Array<S>> reshape(Var<Array<S>>, const detail::Extents&); \
    EXTERN template Var<Array<S>> permute(Var<Array<S>>, const detail::Axes&); \
    EXTERN template Var<Array<S>> transpose(Var<Array<S>>, std::int64_t, std::int64_t); \
    EXTERN template Var<Array<S>> broadcast_to(Var<Array<S>>, const Shape&); \
    EXTERN template Var<Array<S>> slice(Var<Array<S>>, std::int64_t, std::int64_t, std::int64_t); \
    EXTERN template Var<Array<S>> at(Var<Array<S>>, std::int64_t); \
    EXTERN template Var<Array<S>> concat(std::vector<Var<Array<S>>>, std::int64_t); \
    EXTERN template std::vector<Var<Array<S>>> split(const Var<Array<S>>&, const std::vector<std::int64_t>&); \
    EXTERN template std::vector<Var<Array<S>>> split(const Var<Array<S>>&, std::int64_t); \
    EXTERN template Var<Array<S>> rows(Var<Array<S>>, const Array<std::int32_t>&); \
    EXTERN template Var<Array<S>> sum(Var<Array<S>>, const detail::AxesArg&, const detail::ReduceOptions&); \
    EXTERN template Var<Array<S>> mean(Var<Array<S>>, const detail::AxesArg&, const detail::ReduceOptions&); \
    EXTERN template Var<Array<S>> max(Var<Array<S>>, const detail::AxesArg&, const detail::ReduceOptions&); \
    EXTERN template Var<Array<S>> logsumexp(Var<Array<S>>, const detail::AxesArg&, const detail::ReduceOptions&); \
    EXTERN template Var<Array<S>> var(Var<Array<S>>, const detail::AxesArg&, const detail::VarianceOptions&); \
    EXTERN template Var<Array<S>> prod(Var<Array<S>>, const detail::AxesArg&, const detail::ReduceOptions&); \
    EXTERN template Var<Array<S>> cumsum(Var<Array<S>>, std::int64_t); \
    EXTERN template Array<std::int32_t> argmax(const Var<Array<S>>&, std::int64_t, const detail::ReduceOptions&); \
    EXTERN template Var<Array<S>> squeeze(Var<Array<S>>, const detail::AxesArg&); \
    EXTERN template Var<Array<S>> unsqueeze(Var<Array<S>>, std::int64_t); \
    EXTERN template Var<Array<S>> stack(std::vector<Var<Array<S>>>, std::int64_t); \
    EXTERN template Var<Array<S>> softmax(Var<Array<S>>, std::int64_t); \
    EXTERN template Var<Array<S>> log_softmax(Var<Array<S>>, std::int64_t); \
    EXTERN template struct Loss<Array<S>>; \
    EXTERN template Loss<Array<S>> mse(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Loss<Array<S>> binary_cross_entropy(Var<Array<S>>, Var<Array<S>>); \
    EXTERN template Loss<Array<S>> cross_entropy(Var<Array<S>>, const Array<std::int32_t>&, const detail::CrossEntropyOptions&); \
    EXTERN template Loss<Array<S>> info_nce(Var<Array<S>>, Var<Array<S>>, double);
// clang-format on

namespace tally {

TALLY_CORE_INSTANCES(extern, float)
TALLY_CORE_INSTANCES(extern, double)

}  // namespace tally
