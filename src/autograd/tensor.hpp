// The names that programs use: Scalar, Tensor, Tensor64, and how to make them from plain numbers.
#pragma once

#include <initializer_list>

#include "autograd/array.hpp"
#include "autograd/var.hpp"

namespace tally {

using Scalar = Var<double>;
using Tensor = Var<Array<float>>;
using Tensor64 = Var<Array<double>>;

// parameter({0.5f, -1.25f, 0.75f}): a vector that wants a gradient.
template <class S>
Var<Array<S>> parameter(std::initializer_list<S> vector) {
    return parameter(Array<S>(vector));
}

template <class S>
Var<Array<S>> constant(std::initializer_list<S> vector) {
    return constant(Array<S>(vector));
}

}  // namespace tally
