// These functions create arrays of random numbers, arrays of counting numbers and identity matrices.
#pragma once

#include <cstdint>
#include <span>

#include "tally/array/array.hpp"
#include "tally/base/random.hpp"

namespace tally {

namespace detail {
// TensorOptions store the device of a new array, and the seed and stream of its random numbers.
struct TensorOptions {
    Device device = Device::cpu;
    std::uint64_t seed = 0, stream = 0;
};

// Returns numbers distributed uniformly in [low, high). Element i depends only on (seed, stream, i).
template <class S>
Array<S> uniform_array(const Shape& shape, const TensorOptions& options, S low = 0, S high = 1) {
    Array<S> values = Array<S>::empty(shape);
    random::detail::fill_uniform<S>(std::span(values.raw(), values.size()), options.seed, options.stream, low,
                                    high);
    return values.to(options.device);
}

// Returns normally distributed numbers. Element i depends only on (seed, stream, i).
template <class S>
Array<S> normal_array(const Shape& shape, const TensorOptions& options, S mean = 0, S deviation = 1) {
    Array<S> values = Array<S>::empty(shape);
    random::detail::fill_normal<S>(std::span(values.raw(), values.size()), options.seed, options.stream, mean,
                                   deviation);
    return values.to(options.device);
}

// Returns 0, 1, ..., count - 1.
template <class S> Array<S> counting(std::int64_t count) {
    Array<S> values = Array<S>::empty({count});
    S* const at = values.writable();
    for (std::int64_t i = 0; i < count; ++i) at[i] = static_cast<S>(i);
    return values;
}

template <class S> Array<S> identity(std::int64_t size) {
    Array<S> values = Array<S>::zeros({size, size});
    S* const at = values.writable();
    for (std::int64_t i = 0; i < size; ++i) at[i * (size + 1)] = S(1);
    return values;
}
}  // namespace detail

}  // namespace tally
