// Compares the Hessian-vector product of every operation with finite differences of the operation's gradient.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "autograd/operations.hpp"
#include "catch.hpp"
#include "tally/kernels/dual.hpp"

using namespace tally;
using namespace tally::test;

namespace {

using D = Dual<double>;

template <class S>
std::vector<Array<S>> gradients_of(const Problem<S>& problem, const std::vector<Array<S>>& at) {
    std::vector<Var<Array<S>>> xs;
    for (const Array<S>& each : at) xs.push_back(parameter(each.clone()));
    const Var<Array<S>> y = problem.f(xs);
    sum(y * y).backward();  // the square gives linear operations a second derivative, too
    std::vector<Array<S>> all;
    for (const auto& x : xs) all.push_back(x.grad());
    return all;
}

std::vector<Array<double>> moved(const std::vector<Array<double>>& x,
                                 const std::vector<std::vector<double>>& direction, double h) {
    std::vector<Array<double>> all;
    for (std::size_t i = 0; i < x.size(); ++i) {
        std::vector<double> values = x[i].to_vector();
        for (std::size_t j = 0; j < values.size(); ++j) values[j] += h * direction[i][j];
        all.emplace_back(x[i].shape(), values);
    }
    return all;
}

}  // namespace

TEST_CASE("every operation: Hessian-vector products agree with finite differences of the gradient") {
    const auto plain = all_operations<double>();
    const auto dual = all_operations<D>();  // does not compile for an operation without Dual
    REQUIRE(dual.size() == plain.size());
    for (std::size_t at = 0; at < plain.size(); ++at) {
        REQUIRE(std::string(plain[at].name) == dual[at].name);
        std::size_t compared = 0;
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
            Random random(seed), same(seed), directions(seed + 100);
            const Problem<double> problem = plain[at].draw(random);
            const Problem<D> dual_problem = dual[at].draw(same);
            std::vector<std::vector<double>> v;
            std::vector<Array<D>> both;
            for (const Array<double>& input : problem.inputs) {
                std::vector<D> values;
                v.emplace_back();
                for (const double x : input.span()) {
                    v.back().push_back(directions.between(-1, 1));
                    values.emplace_back(x, v.back().back());
                }
                both.emplace_back(input.shape(), values);
            }
            const double h = 1e-6;
            const auto ahead = gradients_of(problem, moved(problem.inputs, v, h)),
                       behind = gradients_of(problem, moved(problem.inputs, v, -h));
            const std::vector<Array<D>> product = gradients_of(dual_problem, both);
            for (std::size_t i = 0; i < product.size(); ++i) {
                INFO(plain[at].name << ", seed " << seed << ", input " << i << " of "
                                    << to_string(problem.inputs[i].shape()));
                REQUIRE(product[i].shape() == problem.inputs[i].shape());
                for (std::size_t j = 0; j < product[i].size(); ++j, ++compared) {
                    const double finite = (ahead[i].span()[j] - behind[i].span()[j]) / (2 * h);
                    REQUIRE(std::abs(product[i].span()[j].rate - finite) <= 1e-5 * (1 + std::abs(finite)));
                }
            }
        }
        INFO(plain[at].name);
        CHECK(compared > 0);
    }
}
