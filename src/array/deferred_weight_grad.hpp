// Collects the rows of several small batches, and adds their weight gradients by a single product.
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

// `deferring_rows` is true while a Window runs backward() on this thread and may defer rows. The Window locks
// the parameters, so that no other code reads or writes gradients of the parameters unnoticed.
inline constinit thread_local bool deferring_rows = false;

struct DeferRowsScope : private ScopedValue<bool> {
    explicit DeferRowsScope(bool may_defer) : ScopedValue(deferring_rows, may_defer) {}
};

// If a and b have few rows and the gradient is locked, stores copies of a and b for flush_rows(), which adds
// aᵀ b, and returns true. Returns false if the caller must add aᵀ b.
// The order of additions, and thus each bit of the gradient, is the same as without deferral. While
// grad_flag::has_deferred_rows is set, any thread must call flush_rows() before it accesses the gradient.
template <class S>
bool defer_rows(const Product& p, const Array<S>& a, const Array<S>& b, const GradientRef<Array<S>>& to);

// flush_rows() adds the deferred rows to the gradient with these flags. discard_rows() drops the rows.
template <std::floating_point S> void flush_rows(Array<S>& gradient, std::uint8_t& grad_flags);
template <std::floating_point S> void discard_rows(Array<S>& gradient, std::uint8_t& grad_flags);
template <class T> void flush_rows(T&, std::uint8_t&) {}  // gradients of other types have no deferred rows
template <class T> void discard_rows(T&, std::uint8_t&) {}
template <class T> inline constexpr bool can_defer_rows = false;
template <std::floating_point S> inline constexpr bool can_defer_rows<Array<S>> = true;

// Adds deferred rows to the gradient, and returns whether there is a gradient.
template <class T> [[gnu::always_inline]] inline bool flush_and_has_gradient(const GradientRef<T>& of) {
    if constexpr (!can_defer_rows<T>) return of.is_present();
    const std::uint8_t before = load_flags(*of.grad_flags);
    if (before & grad_flag::has_deferred_rows) [[unlikely]]
        flush_rows(*of.gradient, *of.grad_flags);
    return of.is_present(before);
}

// Call this before a backward pass writes to the gradient of a locked parameter. Also adds deferred rows.
template <class AnyValueNode> [[gnu::noinline]] void prepare_write_to_locked(const AnyValueNode& node) {
    require_backward_allowed_and_mark_dirty(node.value, node.grad_flags);
    flush_and_has_gradient(node.grad_ref());
}

template <class T> void clear_gradient(const GradientRef<T>& of) {
    if (*of.grad_flags & grad_flag::has_deferred_rows) discard_rows(*of.gradient, *of.grad_flags);
    *of.grad_flags &= static_cast<std::uint8_t>(~grad_flag::present);
}

// Adds aᵀ b to the gradient of an input, immediately or when flush_rows() runs.
template <class S, class To> void accumulate_weight_grad(const Product& p, const Array<S>& a,
                                                         const Array<S>& b, const To& to, std::size_t input) {
    if constexpr (std::is_floating_point_v<S>)
        if (deferring_rows) [[unlikely]]
            if (defer_rows(p, a, b, to.grad_ref(input))) return;
    multiply(p, a, b, grad_buffer(to.into(input)));
}

}  // namespace tally::detail
