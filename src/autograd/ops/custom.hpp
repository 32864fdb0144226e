// custom(): an operation of your own, differentiable like the others, without touching this repository.
#pragma once

#include <string>
#include <utility>

#include "tally/autograd/record.hpp"

namespace tally {

// forward(x...) gives the value. backward(to, dy, y, x...) sends a gradient to each input i that wants one:
//     if (to.needs_grad(0)) to.add(0, gradient);            // a value, handed over
//     if (to.needs_grad(0)) … write to to.into(0) …           // or in place; asked for right before it is written
// Inputs and output are kept for the way back. Who wants to keep less uses record() as the
// operations here do.
template <class Forward, class Backward, class T, class... Rest>
Var<T> custom(std::string name, Forward forward, Backward backward, Var<T> first, Rest... rest) {
    T y = forward(std::as_const(first).value(), std::as_const(rest).value()...);
    if (!detail::has_memory(y))
        throw Error("[" + name +
                    "] its forward function returned an array without memory; return a new array");
    return detail::record_as(detail::Label{std::move(name)}, std::move(y),
                             save(y, first.value(), rest.value()...), std::move(backward), std::move(first),
                             std::move(rest)...);
}

}  // namespace tally
