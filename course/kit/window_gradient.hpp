// Computes the gradient of one update of a `Window`, for lessons that compare gradients.
#pragma once

#include "course/kit/toy.hpp"
#include "tally/train.hpp"

namespace {
// fill(window) adds micro-batches to the window of the parameter v. SGD with the learning rate 1 subtracts the gradient
// of the update from v. If v is 0, this subtraction does not round.
template <class Fill> std::vector<double> window_gradient(const Tensor& v, const Fill& fill) {
    std::vector<double> gradient = tally::lesson::values(v);
    tally::Sgd<real> sgd({v}, {.learning_rate = 1});
    tally::Window<real> window(sgd);
    fill(window);
    window.finish();
    const std::vector<double> after = tally::lesson::values(v);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= after[i];
    return gradient;
}

inline Tensor zeros(const tally::Shape& shape) {
    return tally::parameter(tally::Array<real>::zeros(shape, tally::lesson::options().device));
}
}  // namespace
