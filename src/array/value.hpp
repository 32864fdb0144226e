// The concept Value accepts numbers (scalar.hpp) and arrays (array.hpp) of float, double or Dual.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include "tally/array/array.hpp"
#include "tally/array/scalar.hpp"
#include "tally/kernels/functors.hpp"
#include "tally/kernels/into.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

namespace detail {
// `x` is a value, `dy` is the gradient of a result, and `dx` is the gradient to write.
template <class T>
concept Value = requires(const T& x, const T& dy, T& owned, Into<T> dx) {
    // Elementwise functions return a value, and the derivatives of these functions write through Into.
    { map(functor::Neg{}, x) } -> std::same_as<T>;
    map_back(functor::Neg{}, dy, x, dx, true);  // true: dy is not needed afterwards
    { zip(functor::Add{}, x, x) } -> std::same_as<T>;
    { map_in_place(functor::Neg{}, owned) } -> std::same_as<T>;  // `owned` is not needed afterwards
    { zip_in_place(functor::Add{}, owned, x) } -> std::same_as<T>;
    zip_back<0>(functor::Add{}, dy, x, x, x, dx, true);  // of operand 0 or 1

    accumulate_into(dx, dy);  // dx = dy or dx += dy; a dx without memory shares the buffer of dy
    { detail::try_take_over(dx, dy) } -> std::same_as<bool>;  // moves the buffer of dy to dx
    detail::set_to_one(owned);                                // allocates memory if `owned` has none
    { detail::full_like(x, 1.0) } -> std::same_as<T>;
    // The result has the shape and device of x, and receives memory at the first write.
    { detail::like_without_memory(x) } -> std::same_as<T>;
    { detail::has_memory(x) } -> std::same_as<bool>;
    detail::reset(owned);                              // frees the memory; shape and device stay
    detail::before_in_place_update(owned);             // saved copies keep the old numbers
    detail::make_unique_buffer(owned);                 // copies a shared buffer
    detail::account_as(owned, MemoryClass::gradient);  // sets the memory class; copies a shared gradient
    { detail::same_shape_and_device(x, x) } -> std::same_as<bool>;
    { detail::describe(x) } -> std::same_as<std::string>;  // shape and device, for errors
    { detail::has_one_element(x) } -> std::same_as<bool>;  // has exactly one element
    detail::item(x);                                       // the only element
    detail::shape_of(x);
    { detail::checksum(x) } -> std::same_as<std::uint64_t>;    // of the bits
    { detail::version_of(x) } -> std::same_as<std::uint32_t>;  // the number of changes in place
};
}  // namespace detail

}  // namespace tally
