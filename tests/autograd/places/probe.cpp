// Uses cube(), which elementwise_places_test.py has added in a scratch copy: value, gradient, both scalar
// types, and dual numbers.
#include <cstdio>
#include <vector>

#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/reports/gradcheck.hpp"

using namespace tally;

int faults = 0;

void expect(bool holds, const char* what) {
    if (!holds) std::printf("wrong: %s\n", what);
    faults += !holds;
}

template <class S> void arrays(const char* what) {
    std::vector<S> numbers, cubes, slopes;
    for (int i = -20; i <= 20; ++i) {  // longer than a SIMD batch, and no multiple of one
        const S x = static_cast<S>(i) / 4;
        numbers.push_back(x);
        cubes.push_back(x * x * x);
        slopes.push_back(2 * (3 * x * x));
    }
    const Var<Array<S>> x = parameter(Array<S>({41}, numbers));
    const Var<Array<S>> y = cube(x);
    expect(y.value().to_vector() == cubes, what);
    sum(y).backward();
    sum(cube(x)).backward();  // sets, then adds
    expect(x.grad().to_vector() == slopes, what);
}

int main() {
    const Scalar x = parameter(3.0);
    const Scalar y = cube(x);
    y.backward();
    expect(y.value() == 27 && x.grad() == 27, "a number");
    arrays<float>("float");
    arrays<double>("double");
    const Array<double> curvature =
        hessian_vector([](auto p) { return sum(cube(p)); }, Array<double>{1, 2}, Array<double>{1, 1});
    expect(curvature.to_vector() == std::vector<double>{6, 12}, "the second derivative");
    return faults;
}
