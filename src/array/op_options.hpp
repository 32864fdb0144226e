// Arguments of operations besides arrays: axes, and options that are passed with their names.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tally {

namespace detail {
// Axis numbers, or extents of which one may be -1.
using Axes = std::vector<std::int64_t>;

// The axes of a reduction: sum(x, 0) or sum(x, {0, 2}). No axes means all axes.
struct AxesArg {
    Axes axes;

    AxesArg() = default;
    AxesArg(std::initializer_list<std::int64_t> several) : axes(several) {}
    AxesArg(Axes several) : axes(std::move(several)) {}
    template <std::integral N>
    requires(!std::same_as<N, bool>) AxesArg(N one) : axes{static_cast<std::int64_t>(one)} {}
};

// Options of a reduction. With keepdims the reduced axes stay, with extent 1; without, they are removed.
struct ReduceOptions {
    bool keepdims = false;
};

// Options of a variance. The unbiased variance is divided by the number of elements minus 1.
struct VarianceOptions {
    bool unbiased = true, keepdims = false;
};

// The operands of a product that are stored transposed: matmul(x, w, {.transpose_b = true}).
struct TransposeOptions {
    bool transpose_a = false, transpose_b = false;
};

// Any arithmetic type. Some overloads with it are deleted, so that calls such as sum(x, 0, true) do not compile.
template <class B>
concept Arithmetic = std::is_arithmetic_v<B>;
}  // namespace detail

}  // namespace tally
