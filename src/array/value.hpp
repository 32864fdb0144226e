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
    { map_over(functor::Neg{}, owned) } -> std::same_as<T>;  // where nobody will read `owned` any more
    { zip_over(functor::Add{}, owned, x) } -> std::same_as<T>;
    zip_back_a(functor::Add{}, dy, x, x, x, dx, true);
    zip_back_b(functor::Add{}, dy, x, x, x, dx, true);

    take(dx, dy);  // dx = dy, or dx += dy; of the same form; the first shares its buffer
    { detail::ones_like(x) } -> std::same_as<T>;
    { detail::unwritten_like(x) } -> std::same_as<T>;  // the form of x; its memory comes with the first write
    { detail::ready(x) } -> std::same_as<bool>;        // has its memory
    detail::let_go(owned);                             // gives the memory back; the form stays known
    detail::changing(owned);                           // about to be changed in place
    detail::own(owned);                                // a buffer shared with somebody else is copied
    detail::settle(owned, MemoryClass::gradient);      // what this memory counts as from now on
    { detail::same_form(x, x) } -> std::same_as<bool>;  // shape and device
    { detail::form(x) } -> std::same_as<std::string>;   // in words, for errors
    { detail::single(x) } -> std::same_as<bool>;        // exactly one element
    detail::item(x);                                    // which one
    detail::shape_of(x);
    { detail::checksum(x) } -> std::same_as<std::uint64_t>;    // of its bits
    { detail::version_of(x) } -> std::same_as<std::uint32_t>;  // how often it was changed in place
};

}  // namespace detail

}  // namespace tally
