// Tests every operation on random operands. Gradients must agree with finite differences, and results must
// not depend on old values in reused memory.
#include "autograd/operations.hpp"

#include <cmath>
#include <set>
#include <string>

#include "catch.hpp"
#include "effort.hpp"
#include "tally/tools/gradcheck.hpp"

using namespace tally;
using namespace tally::test;

namespace {

template <class S> std::string to_text(const Problem<S>& problem) {
    std::string text;
    for (const auto& input : problem.inputs) text += " " + to_string(input.shape());
    return text;
}

const std::uint64_t seeds = launches_of(24u);

template <class S> void expect_silence() {
    const Poison poison;
    for (const OperationCase<S>& operation : all_operations<S>()) {
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            Random random(seed);
            const Problem<S> problem = operation.draw(random);
            INFO(operation.name << to_text(problem) << ", seed " << seed);
            std::vector<Var<Array<S>>> xs;
            for (const auto& input : problem.inputs) xs.push_back(parameter(input.clone()));
            std::vector<Array<S>> once;
            for (int round = 0; round < 2; ++round) {  // round 0 sets the gradient, round 1 adds to it
                const Var<Array<S>> y = problem.f(xs);
                REQUIRE_FALSE(any_nan(y.value()));
                sum(y).backward();
                for (std::size_t i = 0; i < xs.size(); ++i) {
                    REQUIRE(xs[i].has_grad());
                    REQUIRE_FALSE(any_nan(xs[i].grad()));
                    if (round == 0) once.push_back(xs[i].grad().clone());
                }
            }
            for (std::size_t i = 0; i < xs.size(); ++i) {  // after two rounds the gradient is doubled
                const auto firsts = once[i].to_vector(), boths = xs[i].grad().to_vector();
                for (std::size_t j = 0; j < firsts.size(); ++j) {
                    const double first = firsts[j], both = boths[j];
                    REQUIRE(std::abs(both - 2 * first) <= 1e-5 * (1 + std::abs(first)));
                }
                xs[i].zero_grad();
            }
            sum(problem.f(xs)).backward();  // writes over the old gradient in the buffer
            for (std::size_t i = 0; i < xs.size(); ++i) REQUIRE(same_bits(xs[i].grad(), once[i]));
        }
    }
}

}  // namespace

TEST_CASE("all_operations: contains every functor") {
    std::set<std::string> checked;
    for (const auto& operation : all_operations<double>()) checked.insert(operation.name);
    const auto look = [&]<class... F>(std::tuple<F...>*) {
        for (const char* name : {static_cast<const char*>(F::name)...}) CHECK(checked.count(name) == 1);
    };
    look(static_cast<detail::UnaryOps*>(nullptr));
    look(static_cast<detail::BinaryOps*>(nullptr));
}

TEST_CASE("every operation: the gradient agrees with finite differences") {
    for (const OperationCase<double>& operation : all_operations<double>()) {
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            Random random(seed);
            const Problem<double> problem = operation.draw(random);
            const auto checked = gradcheck(problem.f, problem.inputs, {.seed = seed});
            INFO(operation.name << to_text(problem) << ", seed " << seed << ": " << checked.report);
            CHECK(checked.ok);
        }
    }
}

TEST_CASE("invariant 4: in double, no operation depends on the old content of memory") {
    expect_silence<double>();
}

TEST_CASE("invariant 4: in float, no operation depends on the old content of memory") {
    expect_silence<float>();
}

TEST_CASE("operations: values and gradients at edges where finite differences fail") {
    const auto gradient = [](auto f, Array<double> at) {
        const Tensor64 x = parameter(std::move(at));
        sum(f(x)).backward();
        return x.grad().to_vector();
    };
    using V = std::vector<double>;
    const double inf = std::numeric_limits<double>::infinity();
    CHECK(gradient([](Tensor64 x) { return relu(x); }, {-1, 0, 2}) == V{0, 0, 1});
    CHECK(gradient([](Tensor64 x) { return abs(x); }, {-1, 0, 2}) == V{-1, 0, 1});
    CHECK(gradient([](Tensor64 x) { return clamp(x, -1, 1); }, {-2, -1, 0, 1, 2}) == V{0, 1, 1, 1, 0});
    CHECK(gradient(
              [](Tensor64 x) {
                  return maximum(x, Tensor64(Array<double>{1, 1, 1}));
              },
              {0, 1, 2}) == V{0, 0.5, 1});
    CHECK(gradient(
              [](Tensor64 x) {
                  return minimum(x, Tensor64(Array<double>{1, 1, 1}));
              },
              {0, 1, 2}) == V{1, 0.5, 0});
    CHECK(gradient([](Tensor64 x) { return maximum(x, x); }, {3}) == V{1});
    CHECK(gradient([](Tensor64 x) { return max(x); }, {3, 7, 7, 1, 7, 7}) == V{0, 0.25, 0.25, 0, 0.25, 0.25});
    CHECK(gradient([](Tensor64 x) { return pow(x, 0); }, {0, 1, 2}) == V{0, 0, 0});
    CHECK(gradient([](Tensor64 x) { return pow(x, 1); }, {0, 1, 2}) == V{1, 1, 1});
    CHECK(gradient([](Tensor64 x) { return pow(x, Tensor64(Array<double>{0, 0})); }, {0, 2}) == V{0, 0});
    CHECK(gradient([](Tensor64 p) { return pow(Tensor64(Array<double>{0, 0}), p); }, {0, 2}) == V{0, 0});
    CHECK(gradient([](Tensor64 x) { return logsumexp(x); }, {-inf, 0}) == V{0, 1});
    CHECK(gradient([](Tensor64 x) { return sqrt(x); }, {4}) == V{0.25});

    const double nan = std::nan("");
    CHECK(any_nan(relu(Tensor64(Array<double>{nan})).value()));
    CHECK(any_nan(maximum(Tensor64(Array<double>{nan, 1}), Tensor64(Array<double>{1, nan})).value()));
    CHECK(any_nan(max(Tensor64(Array<double>{1, nan, 3})).value()));
    CHECK(max(Tensor64(Array<double>{-inf, -inf})).item() == -inf);
    CHECK(logsumexp(Tensor64(Array<double>{-inf, -inf})).item() == -inf);
    CHECK(logsumexp(Tensor64(Array<double>{1000, 1000})).item() == 1000 + std::log(2.0));
    CHECK(softmax(Tensor64(Array<double>{1000, 1000})).value().to_vector() == V{0.5, 0.5});
    CHECK(sum(Tensor64(Array<double>({0, 2}, {})), {0}).value().to_vector() == V{0, 0});
    CHECK(std::isnan(mean(Tensor64(Array<double>({0}, {}))).item()));
}

TEST_CASE("pow, maximum, minimum: accept a number as either operand, and unary plus changes nothing") {
    using V = std::vector<double>;
    const Array<double> x{-1, 0.5, 2, 3};
    const Tensor64 w = parameter(x);
    CHECK((+w).value().to_vector() == x.to_vector());
    CHECK(maximum(w, 2).value().to_vector() == V{2, 2, 2, 3});
    CHECK(maximum(2, w).value().to_vector() == V{2, 2, 2, 3});
    CHECK(minimum(w, 1.5f).value().to_vector() == V{-1, 0.5, 1.5, 1.5});
    CHECK(minimum(1.5, w).value().to_vector() == V{-1, 0.5, 1.5, 1.5});
    CHECK(grad(sum(maximum(w, 2)), {w})[0].to_vector() ==
          V{0, 0, 0.5, 1});  // where w equals 2, each operand gets half of the gradient
    CHECK(pow(2, w).value().to_vector() == pow(full<double>({4}, 2), w).value().to_vector());
    CHECK(pow(0, parameter({0.0, 1.0})).value().to_vector() == V{1, 0});
    CHECK(pow(2, Scalar(3.0)).value() == 8);
    CHECK(maximum(Scalar(3.0), 4).value() == 4);
    const Tensor y = pow(10, parameter({1.f, -2.f})), high = maximum(y, 1e-3);
    CHECK(y.shape() == Shape{2});
    CHECK(high.value().to_vector() == std::vector<float>{10, 0.01f});
    for (const double base : {0.5, 2.0, 10.0})
        CHECK(
            gradcheck([&](const std::vector<Tensor64>& t) { return sum(pow(base, t[0]) * +t[0]); }, {x}).ok);
    CHECK(gradcheck([](const std::vector<Tensor64>& t) { return sum(maximum(t[0], 1) * minimum(2.5, t[0])); },
                    {x})
              .ok);
}
