// Repair the backward function of an operation of your own.
//
// custom(name, forward, backward, x) adds a differentiable operation to tally. forward computes the value,
// and backward computes the gradient of x. The curve of softsign(x) = x / (1 + |x|) looks like tanh, and
// softsign is cheaper to compute. The derivative of softsign is 1 / (1 + |x|)^2. The chain rule multiplies
// the derivative by dy, the gradient of the result.
//
// forward is right. In backward, the line with the loop is wrong. The check compares your gradient with
// finite differences. Example: for x = [0 1 3] and dy = [1 2 -2], the gradient of x is [1 0.5 -0.125].
//
// The question: how do the numbers that the loop in backward computes differ from dy times the derivative?
//
// Given:
//     std::vector<double> dy.to_vector()  // the numbers of dy, as many as x has
//     std::abs(v)                         // |v|
#include "given.hpp"

Tensor64 softsign(const Tensor64& x) {
    const auto forward = [](const Array<double>& in) {
        std::vector<double> y = in.to_vector();
        for (double& v : y) v = v / (1 + std::abs(v));
        return Array<double>(in.shape(), y);
    };
    const auto backward = [](GradInputs<Array<double>> to, const Array<double>& dy, const Array<double>&,
                             const Array<double>& in) {
        std::vector<double> dx = in.to_vector();
        for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = 1 / (1 + dx[i]);
        if (to.needs_grad(0)) to.add(0, Array<double>(in.shape(), dx));
    };
    return custom("softsign", forward, backward, x);
}
