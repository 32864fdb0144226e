// Lets the engine use float, double and Dual as values. Numbers are copied and never shared.
#pragma once

#include <concepts>
#include <optional>
#include <string>

#include "tally/array/shape.hpp"
#include "tally/base/checksum.hpp"
#include "tally/kernels/dual.hpp"
#include "tally/kernels/functors.hpp"
#include "tally/kernels/into.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

namespace detail {
template <class T> inline constexpr bool is_dual = false;
template <class S> inline constexpr bool is_dual<Dual<S>> = true;

// A Number is a float, a double or a Dual.
template <class T>
concept Number = std::floating_point<T> || is_dual<T>;
}  // namespace detail

// Computes dx = value or dx += value.
template <detail::Number T> void accumulate_into(Into<T> into, const T& value) {
    if (into.how == Write::set)
        into.dst = value;
    else
        into.dst += value;
}

// Computes x += factor * y.
template <detail::Number T> void add_scaled(T& x, double factor, const T& y) { x += T(factor) * y; }

namespace functor {  // found by argument-dependent lookup: the first argument is a functor

template <detail::UnaryFunctor F, detail::Number T> T map(const F& f, const T& x) { return f.value(x); }

template <detail::UnaryFunctor F, detail::Number T> T map_in_place(const F& f, const T& x) {
    return f.value(x);
}

template <detail::UnaryFunctor F, detail::Number T>
void map_back(const F& f, const T& dy, const T& saved, Into<T> dx, bool = false) {
    accumulate_into(dx, f.back(dy, saved));
}

template <detail::BinaryFunctor F, detail::Number T> T zip(const F& f, const T& a, const T& b) {
    return f.value(a, b);
}

template <detail::BinaryFunctor F, detail::Number T> T zip_in_place(const F& f, const T& a, const T& b) {
    return f.value(a, b);
}

template <std::size_t operand, detail::BinaryFunctor F, detail::Number T>
void zip_back(const F& f, const T& dy, const T& a, const T& b, const T& y, Into<T> d, bool = false) {
    accumulate_into(d, detail::slope<operand>(f, dy, a, b, y));
}

}  // namespace functor

namespace detail {
// ---- functions that the engine requires of a value (value.hpp) ----

template <Number T> T full_like(const T&, double value) { return T(value); }
template <Number T> void set_to_one(T& x) { x = T(1); }

template <Number T> void reset(T&) {}

template <Number T> bool same_shape_and_device(const T&, const T&) { return true; }

template <Number T> std::string describe(const T&) { return "shape ()"; }

template <Number T> bool has_one_element(const T&) { return true; }

template <Number T> const Shape& shape_of(const T&) {
    static const Shape no_axes;
    return no_axes;
}

template <Number T> T item(const T& x) { return x; }

template <Number T> bool has_memory(const T&) { return true; }

template <Number T> void make_unique_buffer(T&) {}  // a number is never shared

template <Number T> void before_in_place_update(T&) {}

template <Number T> void account_as(T&, MemoryClass) {}
template <Number T> bool try_take_over(Into<T>, const T&) { return false; }

template <Number T> T like_without_memory(const T&) { return T(); }

template <Number T> std::uint64_t checksum(const T& x, std::optional<unsigned> /*sample*/ = {}) {
    return checksum_of(&x, sizeof x);
}

template <Number T> std::uint32_t version_of(const T&) { return 0; }

// A Saved stores a copy of a number for a backward function. Changing the number does not affect the copy.
template <class T> class Saved {
public:
    explicit Saved(const T* value) : value_(value ? *value : T()) {}
    const T& get(const char*) const { return value_; }
    void drop() {}

private:
    T value_{};
};
}  // namespace detail

}  // namespace tally
