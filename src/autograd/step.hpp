// sgd_step: the plainest optimizer, w -= lr * gradient, in place, for every parameter that a
// gradient has reached.
#pragma once

#include <initializer_list>
#include <vector>

#include "tally/autograd/var.hpp"
#include "tally/values/array.hpp"

namespace tally {

template <class T> void sgd_step(const std::vector<Var<T>>& parameters, double learning_rate) {
    for (const Var<T>& parameter : parameters)
        parameter.update([&](T& value, const T& gradient) { add_scaled(value, -learning_rate, gradient); });
}

template <class T> void sgd_step(std::initializer_list<Var<T>> parameters, double learning_rate) {
    sgd_step(std::vector<Var<T>>(parameters), learning_rate);
}

}  // namespace tally
