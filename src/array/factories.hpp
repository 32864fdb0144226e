// Arrays to begin from: counted, random, the identity.
#pragma once

#include <cstdint>
#include <span>

#include "tally/array/array.hpp"
#include "tally/base/random.hpp"

namespace tally {

// Where an array is made, and the seed and stream of a random one.
struct TensorOptions {
    Device device = Device::cpu;
    std::uint64_t seed = 0, stream = 0;
};

// Uniform in [low, high). Element i is a function of (seed, stream, i) and of nothing else.
template <class S>
Array<S> random_uniform(const Shape& shape, const TensorOptions& how, S low = 0, S high = 1) {
    Array<S> values = Array<S>::empty(shape);
    random::detail::fill_uniform<S>(std::span(values.raw(), values.size()), how.seed, how.stream, low, high);
    return values.to(how.device);
}

// Normally distributed, likewise.
template <class S>
Array<S> random_normal(const Shape& shape, const TensorOptions& how, S mean = 0, S deviation = 1) {
    Array<S> values = Array<S>::empty(shape);
    random::detail::fill_normal<S>(std::span(values.raw(), values.size()), how.seed, how.stream, mean,
                                   deviation);
    return values.to(how.device);
}

namespace detail {
// 0, 1, 2, ... below `count`.
template <class S> Array<S> counting(std::int64_t count) {
    Array<S> values = Array<S>::empty({count});
    S* const at = values.writable();
    for (std::int64_t i = 0; i < count; ++i) at[i] = static_cast<S>(i);
    return values;
}

// The identity matrix.
template <class S> Array<S> identity(std::int64_t size) {
    Array<S> values = Array<S>::zeros({size, size});
    S* const at = values.writable();
    for (std::int64_t i = 0; i < size; ++i) at[i * (size + 1)] = S(1);
    return values;
}
}  // namespace detail

}  // namespace tally
