// sgd_step() subtracts learning_rate * gradient in place from each parameter that has a gradient.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"

namespace tally {

template <class T> void sgd_step(const std::vector<Var<T>>& parameters, double learning_rate) {
    if (!(learning_rate >= 0 && learning_rate < std::numeric_limits<double>::infinity()))
        detail::throw_bad_learning_rate(learning_rate);
    for (std::size_t i = 0; i < parameters.size(); ++i)
        if (parameters[i].node_or_throw("sgd_step").grad_flags & grad_flag::holds_average)
            detail::throw_holds_average("sgd_step", i);
    std::size_t marked = 0;  // a parameter that is marked already is a duplicate
    while (marked < parameters.size() && !std::exchange(parameters[marked].node()->is_grad_target, true))
        ++marked;
    for (std::size_t i = 0; i < marked; ++i) parameters[i].node()->is_grad_target = false;
    if (marked < parameters.size()) [[unlikely]] {
        std::vector<std::pair<const Node*, std::size_t>> indexed;
        for (const Var<T>& parameter : parameters) indexed.emplace_back(parameter.node(), indexed.size());
        detail::require_distinct(std::move(indexed));
    }
    for (const Var<T>& parameter : parameters)
        parameter.update([&](T& value, const T& gradient) { add_scaled(value, -learning_rate, gradient); });
}

template <class T> void sgd_step(std::initializer_list<Var<T>> parameters, double learning_rate) {
    sgd_step(std::vector<Var<T>>(parameters), learning_rate);
}

}  // namespace tally
