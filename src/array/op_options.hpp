// Defines the arguments of operations other than arrays, such as axes and named options.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tally {

namespace detail {
using Axes = std::vector<std::int64_t>;     // indices of axes; -1 is the last axis
using Extents = std::vector<std::int64_t>;  // of a shape; one of them may be -1

// AxesArg lists the axes of a reduction, as in sum(x, 0) or sum(x, {0, 2}). An empty list means all axes.
struct AxesArg {
    Axes axes;

    AxesArg() = default;
    AxesArg(std::initializer_list<std::int64_t> several) : axes(several) {}
    AxesArg(Axes several) : axes(std::move(several)) {}
    template <std::integral N>
    requires(!std::same_as<N, bool>) AxesArg(N one) : axes{static_cast<std::int64_t>(one)} {}
};

// If ReduceOptions::keepdims is true, each reduced axis stays with extent 1, otherwise the axis is removed.
struct ReduceOptions {
    bool keepdims = false;
};

// VarianceOptions select the unbiased variance, whose denominator is the number of elements minus 1.
struct VarianceOptions {
    bool unbiased = true, keepdims = false;
};

// TransposeOptions name the operands that are stored transposed, as in matmul(x, w, {.transpose_b = true}).
struct TransposeOptions {
    bool transpose_a = false, transpose_b = false;
};

// Arithmetic accepts any arithmetic type. Deleted overloads use Arithmetic to reject sum(x, 0, true).
template <class B>
concept Arithmetic = std::is_arithmetic_v<B>;
}  // namespace detail

}  // namespace tally
