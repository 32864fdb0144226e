// Rows of a product that are not in the gradient yet: a few wait for more, and one pass through it adds them all.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tally/array/array.hpp"
#include "tally/array/gradient.hpp"
#include "tally/array/products.hpp"
#include "tally/base/scoped_value.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

// Whether rows may wait in this thread: true where a window goes backward, which nobody else can write to.
inline constinit thread_local bool deferring_rows = false;

struct DeferRowsScope : private ScopedValue<bool> {
    explicit DeferRowsScope(bool may) : ScopedValue(deferring_rows, may) {}
};

// Keeps a copy of a few rows of a and b, whose product aᵀ b is to be added, and says whether. An ordered sum has the same
// bits whether its rows come one by one or together. So nobody can tell, as long as whoever reads or writes the
// gradient, in whichever thread, has them added first (ValueNode, while grad_flag::has_deferred_rows).
template <class S>
bool defer_rows(const Product& p, const Array<S>& a, const Array<S>& b, const GradientView<Array<S>>& to);

// Adds what waits for the gradient of this touched, or forgets it.
template <std::floating_point S> void flush_rows(Array<S>& gradient, std::uint8_t& grad_flags);
template <std::floating_point S> void discard_rows(Array<S>& gradient, std::uint8_t& grad_flags);
template <class T> void flush_rows(T&, std::uint8_t&) {}  // for numbers and Dual none waits
template <class T> void discard_rows(T&, std::uint8_t&) {}
template <class T> inline constexpr bool can_defer_rows = false;
template <std::floating_point S> inline constexpr bool can_defer_rows<Array<S>> = true;

// Whether a gradient has arrived, with all its rows.
template <class T> [[gnu::always_inline]] inline bool has_gradient_flushed(const GradientView<T>& of) {
    if constexpr (!can_defer_rows<T>) return of.is_present();
    const std::uint8_t before = load_flags(*of.grad_flags);
    if (before & grad_flag::has_deferred_rows) [[unlikely]]
        flush_rows(*of.gradient, *of.grad_flags);
    return of.is_present(before);
}

// A sweep reaches what a window holds.
template <class Node> [[gnu::noinline]] void before_write_to_locked(const Node& node) {
    before_backward_write(node.value, node.grad_flags);
    has_gradient_flushed(node.view());
}

template <class T> void clear_gradient(const GradientView<T>& of) {
    if (*of.grad_flags & grad_flag::has_deferred_rows) discard_rows(*of.gradient, *of.grad_flags);
    *of.grad_flags &= static_cast<std::uint8_t>(~grad_flag::present);
}

// aᵀ b into a gradient, at once or later.
template <class S, class To> void accumulate_weight_grad(const Product& p, const Array<S>& a,
                                                         const Array<S>& b, const To& to, std::size_t input) {
    if constexpr (std::is_floating_point_v<S>)
        if (deferring_rows) [[unlikely]]
            if (defer_rows(p, a, b, to.view(input))) return;
    multiply(p, a, b, output_buffer(to.into(input)));
}

}  // namespace tally::detail
