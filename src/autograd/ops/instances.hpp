// What most programs do with arrays of float and double is compiled once, in instances_*.cpp, and not again
// by each of them. What is missing here is compiled where it is used.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tally/autograd/ops/conv.hpp"
#include "tally/autograd/ops/dropout.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/embedding.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/norm.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape.hpp"
#include "tally/autograd/tensor.hpp"

// clang-format off
#define TALLY_INSTANCES(WORD, S) \
    WORD template Var<Array<S>> matmul(Var<Array<S>>, Var<Array<S>>, bool, bool); \
    WORD template Var<Array<S>> linear(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>); \
    WORD template Var<Array<S>> linear_relu(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>); \
    WORD template Var<Array<S>> linear(Var<Array<S>>, Var<Array<S>>); \
    WORD template Var<Array<S>> reshape(Var<Array<S>>, const Axes&); \
    WORD template Var<Array<S>> permute(Var<Array<S>>, const Axes&); \
    WORD template Var<Array<S>> transpose(Var<Array<S>>, std::int64_t, std::int64_t); \
    WORD template Var<Array<S>> broadcast_to(Var<Array<S>>, const Shape&); \
    WORD template Var<Array<S>> slice(Var<Array<S>>, std::int64_t, std::int64_t, std::int64_t); \
    WORD template Var<Array<S>> concat(std::vector<Var<Array<S>>>, std::int64_t); \
    WORD template std::vector<Var<Array<S>>> split(const Var<Array<S>>&, const std::vector<std::int64_t>&); \
    WORD template std::vector<Var<Array<S>>> split(const Var<Array<S>>&, std::int64_t); \
    WORD template Var<Array<S>> rows(Var<Array<S>>, const Array<std::int32_t>&); \
    WORD template Loss<Array<S>> mse(Var<Array<S>>, Var<Array<S>>); \
    WORD template Loss<Array<S>> binary_cross_entropy(Var<Array<S>>, Var<Array<S>>); \
    WORD template Loss<Array<S>> cross_entropy(Var<Array<S>>, const Array<std::int32_t>&, std::int32_t, double); \
    WORD template Loss<Array<S>> info_nce(Var<Array<S>>, Var<Array<S>>, double); \
    WORD template Var<Array<S>> layer_norm(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>, double); \
    WORD template Var<Array<S>> sum(Var<Array<S>>, const Axes&, bool); \
    WORD template Var<Array<S>> mean(Var<Array<S>>, const Axes&, bool); \
    WORD template Var<Array<S>> max(Var<Array<S>>, const Axes&, bool); \
    WORD template Var<Array<S>> logsumexp(Var<Array<S>>, const Axes&, bool); \
    WORD template Var<Array<S>> softmax(Var<Array<S>>, std::int64_t); \
    WORD template Var<Array<S>> log_softmax(Var<Array<S>>, std::int64_t); \
    WORD template Var<Array<S>> conv2d(Var<Array<S>>, Var<Array<S>>, Var<Array<S>>, std::int64_t, std::int64_t); \
    WORD template Var<Array<S>> conv2d(Var<Array<S>>, Var<Array<S>>, std::int64_t, std::int64_t); \
    WORD template Var<Array<S>> max_pool2d(Var<Array<S>>, std::int64_t, std::int64_t); \
    WORD template Var<Array<S>> embedding(Var<Array<S>>, const Array<std::int32_t>&, std::optional<std::int64_t>); \
    WORD template Var<Array<S>> dropout(Var<Array<S>>, double, const MaskKey&); \
    WORD template Var<Array<S>> operator+(Var<Array<S>>, Var<Array<S>>); \
    WORD template Var<Array<S>> operator-(Var<Array<S>>, Var<Array<S>>); \
    WORD template Var<Array<S>> operator*(Var<Array<S>>, Var<Array<S>>); \
    WORD template Var<Array<S>> operator/(Var<Array<S>>, Var<Array<S>>); \
    WORD template Var<Array<S>> operator*(Var<Array<S>>, int); \
    WORD template Var<Array<S>> operator*(Var<Array<S>>, float); \
    WORD template Var<Array<S>> operator*(Var<Array<S>>, double); \
    WORD template Var<Array<S>> squared_difference(Var<Array<S>>, Var<Array<S>>); \
    WORD template Var<Array<S>> relu(Var<Array<S>>); \
    WORD template Var<Array<S>> tanh(Var<Array<S>>);
// clang-format on

namespace tally {

TALLY_INSTANCES(extern, float)
TALLY_INSTANCES(extern, double)

}  // namespace tally
