// The names that programs use: Scalar, Tensor, Tensor64, and how to make them from plain numbers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tally/autograd/var.hpp"
#include "tally/base/random.hpp"
#include "tally/values/array.hpp"

namespace tally {

using Scalar = Var<double>;
using Tensor = Var<Array<float>>;
using Tensor64 = Var<Array<double>>;

// parameter({0.5f, -1.25f, 0.75f}): a vector that wants a gradient.
template <class S> Var<Array<S>> parameter(std::initializer_list<S> vector) {
    return parameter(Array<S>(vector));
}

template <class S> Var<Array<S>> constant(std::initializer_list<S> vector) {
    return constant(Array<S>(vector));
}

// Random arrays: element i is a function of (seed, stream, i) and of nothing else.
template <class S>
Array<S> random_uniform(const Shape& shape, std::uint64_t seed, std::uint64_t stream, S low = 0, S high = 1) {
    std::vector<S> values(shape.size());
    random::fill_uniform<S>(values, seed, stream, low, high);
    return Array<S>(shape, values);
}

template <class S> Array<S> random_normal(const Shape& shape, std::uint64_t seed, std::uint64_t stream,
                                          S mean = 0, S deviation = 1) {
    std::vector<S> values(shape.size());
    random::fill_normal<S>(values, seed, stream, mean, deviation);
    return Array<S>(shape, values);
}

}  // namespace tally
