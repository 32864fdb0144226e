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

// `deferring_products` is true while a Window runs backward() on this thread and may defer products. The Window
// locks the parameters, so that no other code reads or writes gradients of the parameters unnoticed.
inline constinit thread_local bool deferring_products = false;

struct DeferProductScope : private ScopedValue<bool> {
    explicit DeferProductScope(bool may_defer) : ScopedValue(deferring_products, may_defer) {}
};

// Stores copies of a and b, so that add_deferred() can add aᵀ b later, and returns true. Returns false if the
// caller must compute the product now: a and b have many rows, the gradient is small, missing, unlocked or
// escaped, products are not ordered, or the memory or the device does not allow copies.
// The order of additions, and thus each bit of the gradient, is the same as without deferral. While
// grad_flag::has_deferred is set, any thread must call add_deferred() before it accesses the gradient.
template <class S>
bool defer_product(const Product& p, const Array<S>& a, const Array<S>& b, const GradientRef<Array<S>>& to);

// add_deferred() adds the deferred products to the gradient with these flags. discard_deferred() drops them.
template <std::floating_point S> void add_deferred(Array<S>& gradient, std::uint8_t& grad_flags);
template <std::floating_point S> void discard_deferred(Array<S>& gradient, std::uint8_t& grad_flags);
template <class T> void add_deferred(T&, std::uint8_t&) {}  // other types have no deferred products
template <class T> void discard_deferred(T&, std::uint8_t&) {}
template <class T> inline constexpr bool can_defer_product = false;
template <std::floating_point S> inline constexpr bool can_defer_product<Array<S>> = true;

// Adds deferred products to the gradient, and returns whether there is a gradient.
template <class T> [[gnu::always_inline]] inline bool complete_gradient(const GradientRef<T>& of) {
    if constexpr (!can_defer_product<T>) return of.is_present();
    const std::uint8_t before = load_flags(*of.grad_flags);
    if (before & grad_flag::has_deferred) [[unlikely]]
        add_deferred(*of.gradient, *of.grad_flags);
    return of.is_present(before);
}

// Call this before a backward pass writes to the gradient of a locked parameter. Also adds deferred rows.
template <class AnyValueNode> [[gnu::noinline]] void prepare_write_to_locked(const AnyValueNode& node) {
    require_backward_allowed_and_mark_dirty(node.value, node.grad_flags);
    complete_gradient(node.grad_ref());
}

template <class T> void clear_gradient(const GradientRef<T>& of) {
    if (*of.grad_flags & grad_flag::has_deferred) discard_deferred(*of.gradient, *of.grad_flags);
    *of.grad_flags &= static_cast<std::uint8_t>(~grad_flag::present);
}

// Adds aᵀ b to the gradient of an input, immediately or when add_deferred() runs.
template <class S, class To> void accumulate_weight_grad(const Product& p, const Array<S>& a,
                                                         const Array<S>& b, const To& to, std::size_t input) {
    if constexpr (std::is_floating_point_v<S>)
        if (deferring_products) [[unlikely]]
            if (defer_product(p, a, b, to.grad_ref(input))) return;
    multiply(p, a, b, grad_buffer(to.into(input)));
}

}  // namespace tally::detail
