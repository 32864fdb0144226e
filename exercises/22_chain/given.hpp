// Declares what exercise chain provides.
#pragma once
#include "exercise.hpp"

using namespace tally;

inline namespace exercise_chain {

struct DeepChain {
    std::vector<Tensor> w;             // one square matrix for each layer
    std::size_t segments;              // 1 to w.size()
    std::vector<Array<float>> inputs;  // forward() keeps the input of each segment here
};

// One layer: (rows, n) -> (rows, n). A recorded layer keeps its result until backward.
inline Tensor layer(const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)); }

// Runs layers `from` to `to` - 1.
inline Tensor layers(Tensor x, const std::vector<Tensor>& w, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) x = layer(x, w[i]);
    return x;
}

// Returns the mean squared error.
inline Tensor loss_of(const Tensor& y, const Array<float>& target) {
    const Tensor error = y - constant(target);
    return mean(error * error);
}

}  // namespace exercise_chain

float forward(DeepChain& chain, const Array<float>& x, const Array<float>& target);
void backward(DeepChain& chain, const Array<float>& target);
HAND_IN(forward);
HAND_IN(backward);
