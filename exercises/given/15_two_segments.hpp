// Exercise 15, two segments: what is given.
#pragma once
#include "exercise.hpp"

using namespace tally;

inline namespace exercise_15 {

// One layer: (rows, n) -> (rows, n). Of each layer that is recorded its result is kept until backward.
inline Tensor layer(const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)); }

// Layers `from` to `to` - 1, one after the other.
inline Tensor layers(Tensor x, const std::vector<Tensor>& w, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) x = layer(x, w[i]);
    return x;
}

// The plain way: all layers are recorded, and all of their results are kept.
inline void backward_plainly(const Tensor& x, const std::vector<Tensor>& w) {
    mean(layers(x, w, 0, w.size())).backward();
}

}  // namespace exercise_15

// Leaves the same gradients, but never keeps the results of more than one half of the layers.
void backward_in_two(const Tensor& x, const std::vector<Tensor>& w);
HAND_IN(backward_in_two);
