// An operation of your own.
//
// custom(name, forward, backward, x) adds a differentiable operation: forward gives the value, backward hands on the
// gradient. softsign(x) = x / (1 + |x|) looks like tanh and is cheaper; its derivative is 1 / (1 + |x|)^2. What
// backward is given is dy, the gradient of the result: the chain rule multiplies by it. dy.to_vector() has its numbers,
// as in.to_vector() has those of x.
//
// Something in backward is not right. gradcheck compares it with finite differences, and tells where.
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
