// gradcheck() compares gradients with finite differences. hessian_vector() uses dual numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/var.hpp"
#include "tally/base/random.hpp"
#include "tally/base/text.hpp"
#include "tally/tools/check_rules.hpp"

namespace tally {

namespace detail {
// Stores the result of gradcheck().
struct Gradcheck {
    explicit operator bool() const { return ok; }
    bool ok = true;
    double worst = 0;    // largest relative difference
    std::string report;  // where the largest difference is, and both derivatives
};

// Options of gradcheck().
struct GradcheckOptions {
    double step = 1e-6;
    double tolerance = 1e-6;  // relative to max(1, |gradient|)
    std::size_t small = 64;   // up to this many elements, each one is checked separately
    std::uint64_t seed = 0;   // for the random direction and the weights of the output
};

using Direction = std::vector<std::vector<double>>;  // indexed by input, then by element

inline std::vector<double> random_numbers(std::size_t size, std::uint64_t seed, std::uint64_t stream) {
    std::vector<double> values(size);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = random::detail::uniform<double>(seed, stream, i) * 2 - 1;
    return values;
}

// Returns parameters with the values of `at` plus h times the direction.
inline std::vector<Var<Array<double>>> moved(const std::vector<Array<double>>& at, const Direction& direction,
                                             double h) {
    std::vector<Var<Array<double>>> xs;
    for (std::size_t i = 0; i < at.size(); ++i) {
        std::vector<double> x = at[i].to_vector();
        for (std::size_t j = 0; h != 0 && j < x.size(); ++j) x[j] += h * direction[i][j];
        xs.push_back(parameter(Array<double>(at[i].shape(), x, at[i].device())));
    }
    return xs;
}
}  // namespace detail

// Checks the gradient of Σ weight·f, where f maps a vector of variables to one variable of any shape.
// Compares the derivative in one random direction and, for small inputs, the derivative by each element. Also
// checks the backward functions by CheckRules.
template <class F> detail::Gradcheck gradcheck(F f, const std::vector<Array<double>>& at,
                                               const detail::GradcheckOptions& options = {}) {
    using T = Array<double>;
    const CheckRules check;
    detail::Direction direction, gradient;
    std::size_t elements = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
        direction.push_back(detail::random_numbers(at[i].size(), options.seed, 2 + i));
        elements += at[i].size();
    }
    const std::vector<Var<T>> xs = detail::moved(at, direction, 0);
    Var<T> y = f(xs);
    const T weight(y.shape(), detail::random_numbers(y.value().size(), options.seed, 1), y.value().device());
    const auto total = [&](Var<T> of) { return sum(std::move(of) * constant(weight)); };
    for (const T& each : grad(total(std::move(y)), xs)) gradient.push_back(each.to_vector());

    detail::Gradcheck result;
    const auto compare = [&](const std::string& where) {
        const NoGrad off;
        const auto at_step = [&](double h) { return total(f(detail::moved(at, direction, h))).item(); };
        const double h = options.step, finite = (at_step(h) - at_step(-h)) / (2 * h);
        double analytic = 0;
        for (std::size_t i = 0; i < at.size(); ++i)
            for (std::size_t j = 0; j < at[i].size(); ++j) analytic += gradient[i][j] * direction[i][j];
        const double difference =
            std::abs(finite - analytic) / std::max({1.0, std::abs(finite), std::abs(analytic)});
        if (!std::isnan(result.worst) && !(difference <= result.worst)) {  // also true if difference is NaN
            result.worst = difference;
            result.report = where + ": backward gives " + detail::with_decimals(analytic, 6) +
                            ", finite differences give " + detail::with_decimals(finite, 6);
        }
        result.ok = result.ok && difference <= options.tolerance;
    };
    compare("random direction, seed " + std::to_string(options.seed));
    if (elements > options.small) return result;
    for (auto& each : direction) std::fill(each.begin(), each.end(), 0.0);
    for (std::size_t i = 0; i < at.size(); ++i)
        for (std::size_t j = 0; j < at[i].size(); ++j) {
            direction[i][j] = 1;
            compare("input " + std::to_string(i) + ", element " + std::to_string(j));
            direction[i][j] = 0;
        }
    return result;
}

// Returns the product of the Hessian of f at x and v. f must accept any scalar type and return one element.
template <class F> Array<double> hessian_vector(F f, const Array<double>& x, const Array<double>& v) {
    if (!detail::same_shape_and_device(x, v))
        detail::fail_gradient_shape(detail::describe(x), detail::describe(v));
    using D = Dual<double>;
    std::vector<D> values(x.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = D(x.span()[i], v.span()[i]);
    const Var<Array<D>> p = parameter(Array<D>(x.shape(), values));
    const Array<D> gradient = grad(f(p), {p}).front();
    std::vector<double> product(x.size());
    for (std::size_t i = 0; i < product.size(); ++i) product[i] = gradient.span()[i].rate;
    return Array<double>(x.shape(), product);
}

}  // namespace tally
