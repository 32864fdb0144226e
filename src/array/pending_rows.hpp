// Rows of a product that are not in the gradient yet: a few wait for more, and one pass through it adds them all.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tally/array/array.hpp"
#include "tally/array/gradient.hpp"
#include "tally/array/products.hpp"
#include "tally/base/meanwhile.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

// Whether rows may wait in this thread: true where a window goes backward, which nobody else can write to.
inline constinit thread_local bool rows_may_wait = false;

struct Waiting : private Meanwhile<bool> {
    explicit Waiting(bool may) : Meanwhile(rows_may_wait, may) {}
};

// Keeps a copy of a few rows of a and b, whose product aᵀ b is to be added, and says whether. An ordered sum has the same
// bits whether its rows come one by one or together. So nobody can tell, as long as whoever reads or writes the
// gradient, in whichever thread, has them added first (ValueNode, while touch::pending).
template <class S>
bool keep_rows(const Product& p, const Array<S>& a, const Array<S>& b, const GradientView<Array<S>>& to);

// Adds what waits for the gradient of this touched, or forgets it.
template <std::floating_point S> void add_rows(Array<S>& gradient, std::uint8_t& touched);
template <std::floating_point S> void forget_rows(Array<S>& gradient, std::uint8_t& touched);
template <class T> void add_rows(T&, std::uint8_t&) {}  // for numbers and Dual none waits
template <class T> void forget_rows(T&, std::uint8_t&) {}
template <class T> inline constexpr bool may_wait = false;
template <std::floating_point S> inline constexpr bool may_wait<Array<S>> = true;

// Whether a gradient has arrived, with all its rows.
template <class T> [[gnu::always_inline]] inline bool has_all(const GradientView<T>& of) {
    if constexpr (!may_wait<T>) return of.has_arrived();
    const std::uint8_t before = noted(*of.touched);
    if (before & touch::pending) [[unlikely]]
        add_rows(*of.gradient, *of.touched);
    return of.has_arrived(before);
}

// A sweep reaches what a window holds.
template <class Node> [[gnu::noinline]] void reach_held(const Node& node) {
    meet(node.value, node.touched);
    has_all(node.view());
}

template <class T> void untouch(const GradientView<T>& of) {
    if (*of.touched & touch::pending) forget_rows(*of.gradient, *of.touched);
    *of.touched &= static_cast<std::uint8_t>(~touch::arrived);
}

// aᵀ b into a gradient, at once or later.
template <class S, class To>
void multiply_rows(const Product& p, const Array<S>& a, const Array<S>& b, const To& to, std::size_t input) {
    if constexpr (std::is_floating_point_v<S>)
        if (rows_may_wait) [[unlikely]]
            if (keep_rows(p, a, b, to.view(input))) return;
    multiply(p, a, b, destination(to.into(input)));
}

}  // namespace tally::detail
