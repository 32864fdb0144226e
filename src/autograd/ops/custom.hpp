// custom() makes a differentiable operation from two functions of the program, forward and backward.
#pragma once

#include <string>
#include <utility>

#include "tally/autograd/record.hpp"

namespace tally {

// forward(x...) returns the value. backward(to, dy, y, x...) writes the gradient of each input that needs it:
//     if (to.needs_grad(0)) to.add(0, gradient);      // adds a computed gradient
//     if (to.needs_grad(1)) { const auto dx = to.into(1); … }  // or writes dx.dst in place, as dx.how says
// custom() saves all inputs and the output for backward(). With record(), an operation can save fewer values.
template <class Forward, class Backward, class T, class... Rest>
Var<T> custom(std::string name, Forward forward, Backward backward, Var<T> first, Rest... rest) {
    T y = forward(std::as_const(first).value(), std::as_const(rest).value()...);
    if (!detail::has_memory(y))
        throw Error(name, "its forward function returned an array without memory; return a new array");
    return detail::record_as(detail::RuntimeName{std::move(name)}, std::move(y),
                             save(y, first.value(), rest.value()...), std::move(backward), std::move(first),
                             std::move(rest)...);
}

}  // namespace tally
