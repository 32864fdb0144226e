// Compares hessian_vector() and derivatives of scalar duals with finite differences and exact second
// derivatives.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/tools/gradcheck.hpp"

using namespace tally;
using namespace tally::test;

namespace {

using D = Dual<double>;

double dot(const Array<double>& a, const Array<double>& b) {
    double total = 0;
    for (std::size_t i = 0; i < a.size(); ++i) total += a.span()[i] * b.span()[i];
    return total;
}

Array<double> moved(const Array<double>& x, const Array<double>& v, double h) {
    std::vector<double> values = x.to_vector();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += h * v.span()[i];
    return Array<double>(x.shape(), values);
}

// Compares the product H v with finite differences of gradients. H must be symmetric, so u' H v must equal v'
// H u.
template <class F>
void check(const char* name, F f, const Shape& shape, double low = -1.5, double high = 1.5) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        INFO(name << ", seed " << seed);
        Random random(seed);
        const Array<double> x = random.array<double>(shape, low, high), u = random.array<double>(shape),
                            v = random.array<double>(shape);
        const auto gradient = [&](const Array<double>& at) {
            const Tensor64 p = parameter(at);
            return grad(f(p), {p}).front();
        };
        const double h = 1e-5;
        const Array<double> ahead = gradient(moved(x, v, h)), behind = gradient(moved(x, v, -h)),
                            product = hessian_vector(f, x, v);
        REQUIRE(product.shape() == shape);
        for (std::size_t i = 0; i < product.size(); ++i) {
            const double finite = (ahead.span()[i] - behind.span()[i]) / (2 * h);
            CHECK(std::abs(product.span()[i] - finite) <= 1e-7 * (1 + std::abs(finite)));
        }
        const double uHv = dot(u, product), vHu = dot(v, hessian_vector(f, x, u));
        CHECK(std::abs(uHv - vHu) <= 1e-12 * (1 + std::abs(uHv)));
    }
}

}  // namespace

TEST_CASE("Law: matmul of duals has the bits of matmul of their values") {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        Random r(seed);
        const std::int64_t m = r.whole(1, 12), n = r.whole(1, 12), k = r.whole(0, 20);
        const Array<double> a = r.array<double>({m, k}), b = r.array<double>({k, n});
        const auto with_rates = [&](const Array<double>& x) {
            std::vector<D> duals;
            const Array<double> rates = r.array<double>(x.shape());
            for (std::size_t i = 0; i < x.size(); ++i) duals.emplace_back(x.span()[i], rates.span()[i]);
            return Array<D>(x.shape(), duals);
        };
        const Array<double> c = matmul(Tensor64(a), Tensor64(b)).value();
        const Array<D> d = matmul(Var<Array<D>>(with_rates(a)), Var<Array<D>>(with_rates(b))).value();
        INFO("seed " << seed << ": " << m << "x" << k << " times " << k << "x" << n);
        CHECK(std::equal(c.span().begin(), c.span().end(), d.span().begin(),
                         [](double number, D dual) { return number == dual.value; }));
    }
}

TEST_CASE("hessian_vector: the product of a network agrees with finite differences") {
    Random random(5);
    const auto data = random.array<double>({4, 3});
    const Array<std::int32_t> labels({4}, {0, 1, 1, 0});
    check("network",
          [&]<class S>(Var<Array<S>> w) {
              std::vector<S> numbers;
              for (double each : data.span()) numbers.push_back(S(each));
              const Var<Array<S>> x(Array<S>({4, 3}, numbers));
              const auto hidden = tanh(matmul(x, reshape(slice(w, 0, 0, 9), {3, 3})));
              return cross_entropy(matmul(hidden, reshape(slice(w, 0, 9, 15), {3, 2})), labels).mean();
          },
          {15});
}

TEST_CASE("hessian_vector: the product is exact for a quadratic form") {
    const Array<double> x{1, 2}, v{3, -1};
    const auto product = hessian_vector(
        [](auto p) { return sum(p * p * 2) + sum(slice(p, 0, 0, 1) * slice(p, 0, 1, 2)); }, x, v);
    CHECK(product.to_vector() == std::vector<double>{4 * 3 - 1, 4 * -1 + 3});
    CHECK_THROWS_WITH(hessian_vector([](auto p) { return sum(p); }, x, Array<double>{1, 2, 3}),
                      contains("shape (2), the gradient has shape (3)"));
}

TEST_CASE("Var<Dual>: the gradient carries the second derivative") {
    const Var<D> x = parameter(D(2, 1));
    (x * x * x).backward();
    CHECK(x.grad().value == 12);
    CHECK(x.grad().rate == 12);
    const auto second = [](auto f, double at) {
        const Var<D> p = parameter(D(at, 1));
        f(p).backward();
        return p.grad().rate;
    };
    CHECK(second([](Var<D> p) { return pow(p, 2); }, 0) == 2);
    CHECK(second([](Var<D> p) { return pow(p, 0); }, 2) == 0);
    CHECK(second([](Var<D> p) { return abs(p); }, -1) == 0);
    CHECK(std::abs(second([](Var<D> p) { return tanh(p); }, 0.5) +
                   2 * std::tanh(0.5) * (1 - std::tanh(0.5) * std::tanh(0.5))) < 1e-15);
}
