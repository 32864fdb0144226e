// What operations are told beside arrays: axes, and flags that have names where they are given.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tally {

namespace detail {
// Numbers of axes, or extents of which one may be -1.
using Axes = std::vector<std::int64_t>;
}  // namespace detail

// What a reduction goes over: sum(x, 0), sum(x, {0, 2}); no axes means all of them.
struct AxesArg {
    detail::Axes axes;

    AxesArg() = default;
    AxesArg(std::initializer_list<std::int64_t> several) : axes(several) {}
    AxesArg(detail::Axes several) : axes(std::move(several)) {}
    template <std::integral N>
    requires(!std::same_as<N, bool>) AxesArg(N one) : axes{static_cast<std::int64_t>(one)} {}
};

// What becomes of the axes that a reduction goes over: they vanish, or stay with extent 1.
struct Reduce {
    bool keepdims = false;
};

// The same of a variance: unbiased, it is divided by one less than the number of elements.
struct Variance {
    bool unbiased = true, keepdims = false;
};

// Which operands of a product are stored transposed: matmul(x, w, {.transpose_b = true}).
struct Transpose {
    bool transpose_a = false, transpose_b = false;
};

namespace detail {
// A bool or a number without a name: calls that take options reject it.
template <class B>
concept BoolOrNumberLiteral = std::is_arithmetic_v<B>;
}  // namespace detail

}  // namespace tally
