// What a type must offer so that the engine can differentiate through it. Three kinds of type do: numbers
// (scalar.hpp), arrays (array.hpp) and, as the scalar type of either, Dual (dual.hpp).
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
// The value `x`, the gradient `dy` that arrives, the gradient `dx` to write.
template <class T>
concept Value = requires(const T& x, const T& dy, T& owned, Into<T> dx) {
    // every formula, and its mirror image, which writes through Into
    { map(functor::Neg{}, x) } -> std::same_as<T>;
    map_back(functor::Neg{}, dy, x, dx, true);  // true: nobody will read dy any more
    { zip(functor::Add{}, x, x) } -> std::same_as<T>;
    { map_in_place(functor::Neg{}, owned) } -> std::same_as<T>;  // where nobody will read `owned` any more
    { zip_in_place(functor::Add{}, owned, x) } -> std::same_as<T>;
    zip_back_a(functor::Add{}, dy, x, x, x, dx, true);
    zip_back_b(functor::Add{}, dy, x, x, x, dx, true);

    accumulate_into(dx, dy);  // dx = dy, or dx += dy; of the same form; the first shares its buffer
    { detail::ones_like(x) } -> std::same_as<T>;
    {
        detail::like_without_memory(x)
        } -> std::same_as<T>;                          // the form of x; its memory comes with the first write
    { detail::has_memory(x) } -> std::same_as<bool>;   // has its memory
    detail::reset(owned);                              // gives the memory back; the form stays known
    detail::before_in_place_update(owned);             // about to be changed in place
    detail::make_unique_buffer(owned);                 // a buffer shared with somebody else is copied
    detail::account_as(owned, MemoryClass::gradient);  // what this memory counts as from now on
    { detail::same_shape_and_device(x, x) } -> std::same_as<bool>;  // shape and device
    { detail::describe(x) } -> std::same_as<std::string>;           // in words, for errors
    { detail::is_scalar(x) } -> std::same_as<bool>;                 // exactly one element
    detail::item(x);                                                // which one
    detail::shape_of(x);
    { detail::checksum(x) } -> std::same_as<std::uint64_t>;    // of its bits
    { detail::version_of(x) } -> std::same_as<std::uint32_t>;  // how often it was changed in place
};
}  // namespace detail

}  // namespace tally
