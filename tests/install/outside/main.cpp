// Defines a user's operation log(1 + exp(x)) with the installed library. gradcheck() checks the operation.
#include <cmath>
#include <cstdio>
#include <vector>

#include <tally/tally.hpp>

using namespace tally;

template <class S> Var<Array<S>> soft_positive(Var<Array<S>> x) {
    const auto forward = [](const Array<S>& in) {
        std::vector<S> out;
        for (S v : in.span()) out.push_back(std::log1p(std::exp(v)));
        return Array<S>(in.shape(), out);
    };
    const auto backward = [](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>&,
                             const Array<S>& in) {
        if (!to.needs_grad(0)) return;
        std::vector<S> dx;
        for (std::size_t i = 0; i < in.size(); ++i)
            dx.push_back(dy.span()[i] / (1 + std::exp(-in.span()[i])));
        to.add(0, Array<S>(in.shape(), dx));
    };
    return custom("soft_positive", forward, backward, std::move(x));
}

int main() {
    // The gradient is added to the gradient of a second use of the same parameter.
    Tensor64 x = parameter(Array<double>{-1.0, 0.0, 2.0});
    sum(soft_positive(x) + x * x).backward();
    for (std::size_t i = 0; i < 3; ++i) {
        const double at = x.value().span()[i];
        const double expected = 1 / (1 + std::exp(-at)) + 2 * at;
        if (std::abs(x.grad().span()[i] - expected) > 1e-12) {
            std::printf("gradient %zu is %.17g, expected %.17g\n", i, x.grad().span()[i], expected);
            return 1;
        }
    }
    const auto through = [](const std::vector<Tensor64>& in) { return soft_positive(matmul(in[0], in[1])); };
    const auto check =
        gradcheck(through, {Array<double>({2, 3}, {0.5, -1, 2, 0, 1.5, -0.25}), Array<double>{1, -2, 0.5}});
    if (!check.ok) {
        std::printf("%s\n", check.report.c_str());
        return 1;
    }
    std::printf("tally %d.%d.%d: soft_positive agrees, worst difference %.1e\n", TALLY_VERSION_MAJOR,
                TALLY_VERSION_MINOR, TALLY_VERSION_PATCH, check.worst);
}
