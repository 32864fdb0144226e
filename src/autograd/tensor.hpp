// Defines the variable types Scalar, Tensor and Tensor64, and functions that create and print variables.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <type_traits>

#include "tally/array/array.hpp"
#include "tally/array/factories.hpp"
#include "tally/autograd/var.hpp"

namespace tally {

using Scalar = Var<double>;
using Tensor = Var<Array<float>>;
using Tensor64 = Var<Array<double>>;

// A braced list creates a vector, as in parameter({0.5f, 2.f}). Only parameters receive gradients.
template <class S> Var<Array<S>> parameter(std::initializer_list<S> vector) {
    static_assert(!std::is_integral_v<S>, "parameters are float or double: write 1.f or 1.0 instead of 1");
    return parameter(Array<S>(vector));
}
template <class S> Var<Array<S>> constant(std::initializer_list<S> vector) {
    static_assert(!std::is_integral_v<S>, "variables are float or double: write 1.f or 1.0 instead of 1");
    return constant(Array<S>(vector));
}

// ---- constants, as in zeros({2, 3}), randn({3}, {.seed = 7}) and ones({6}, {.device = Device::cuda}) ----

// Returns a constant whose elements all equal `value`.
template <class S = float>
Var<Array<S>> full(const Shape& shape, double value, const detail::TensorOptions& options = {}) {
    return constant(Array<S>::full(shape, static_cast<S>(value), options.device));
}
template <class S = float>
Var<Array<S>> zeros(const Shape& shape, const detail::TensorOptions& options = {}) {
    return full<S>(shape, 0, options);
}
template <class S = float> Var<Array<S>> ones(const Shape& shape, const detail::TensorOptions& options = {}) {
    return full<S>(shape, 1, options);
}
// Returns the vector 0, 1, ..., count - 1.
template <class S = float>
Var<Array<S>> arange(std::int64_t count, const detail::TensorOptions& options = {}) {
    return constant(detail::counting<S>(count).to(options.device));
}
template <class S = float> Var<Array<S>> eye(std::int64_t size, const detail::TensorOptions& options = {}) {
    return constant(detail::identity<S>(size).to(options.device));
}
template <class S = float>
Var<Array<S>> randn(const Shape& shape, const detail::TensorOptions& options = {}) {
    return constant(detail::normal_array<S>(shape, options));
}
template <class S = float> Var<Array<S>> randn(const Shape& shape, double mean, double deviation,
                                               const detail::TensorOptions& options = {}) {
    return constant(detail::normal_array<S>(shape, options, S(mean), S(deviation)));
}
// Draws random elements from the interval [low, high).
template <class S = float> Var<Array<S>> uniform(const Shape& shape, double low = 0, double high = 1,
                                                 const detail::TensorOptions& options = {}) {
    return constant(detail::uniform_array<S>(shape, options, static_cast<S>(low), static_cast<S>(high)));
}

// Prints the value, the shape and the operation, as in "[ 0.5000 -1.2500  0.7500] (3), parameter".
template <detail::Value T> std::ostream& operator<<(std::ostream& out, const Var<T>& x) {
    if (!x) return out << "empty variable";
    out << x.value();
    if (x.shape().rank() > 0) out << ' ' << to_string(x.shape());
    return out << ", " << (x.node()->state >= detail::State::fresh ? "made by " : "") << x.node()->op()
               << (x.has_grad() ? ", with a gradient" : "");
}

}  // namespace tally
