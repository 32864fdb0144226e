// Tests that gradcheck() finds wrong gradients and names the wrong element.
#include "tally/tools/gradcheck.hpp"

#include <cmath>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

using A = Array<double>;
using Inputs = std::vector<Tensor64>;

// Returns the function x². Element `at` of the gradient of x² is multiplied by `factor`.
auto square_with_error(std::size_t at, double factor) {
    return [=](const Inputs& x) {
        return custom(
            "square", [](const A& a) { return zip(functor::Mul{}, a, a); },
            [=](GradInputs<A> to, const A& dy, const A&, const A& a) {
                A gradient = map(functor::MulNumber{2}, zip(functor::Mul{}, dy, a));
                if (gradient.size() > at) gradient.writable()[at] *= factor;
                to.add(0, std::move(gradient));
            },
            x[0]);
    };
}

}  // namespace

TEST_CASE("gradcheck: a right gradient passes, and the report has the largest difference") {
    const auto checked = gradcheck(square_with_error(0, 1), {A{1, -2, 3}});
    CHECK(static_cast<bool>(checked));
    CHECK(checked.ok);
    CHECK(checked.worst < 1e-7);
    CHECK_THAT(checked.report, contains("backward gives"));
}

TEST_CASE("gradcheck: the report names the input and the element of a wrong gradient") {
    const auto checked = gradcheck(square_with_error(1, 2), {A{1, -2, 3}});
    CHECK_FALSE(checked);
    CHECK_FALSE(checked.ok);
    CHECK(checked.worst > 0.1);
    CHECK_THAT(checked.report, contains("input 0, element 1: backward gives"));
}

TEST_CASE("gradcheck: a random direction finds one wrong element among many") {
    Random random(1);
    const A many = random.array<double>({500});
    const auto wrong = gradcheck(square_with_error(321, 1.5), {many});
    CHECK_FALSE(wrong.ok);
    CHECK_THAT(wrong.report, contains("random direction, seed 0"));
    CHECK(gradcheck(square_with_error(321, 1), {many}).ok);
}

TEST_CASE("gradcheck: NaN does not pass") {
    CHECK_FALSE(gradcheck(square_with_error(0, std::nan("")), {A{1}}).ok);
    const auto checked = gradcheck([](const Inputs& x) { return log(x[0]); }, {A{-1}});
    CHECK_FALSE(checked);
    CHECK_FALSE(checked.ok);
    CHECK(std::isnan(checked.worst));
    CHECK_THAT(checked.report, contains("nan"));
}

TEST_CASE("gradcheck: outputs have weights, so that errors that cancel in a plain sum are found") {
    const auto swapped = [](const Inputs& x) {  // exchanges the gradients of two elements
        return custom(
            "swapped", [](const A& a) { return a.clone(); },
            [](GradInputs<A> to, const A& dy, const A&, const A&) {
                to.add(0, A{dy.span()[1], dy.span()[0]});
            },
            x[0]);
    };
    CHECK_FALSE(gradcheck(swapped, {A{1, 2}}).ok);
}

TEST_CASE("gradcheck: inputs stay unchanged, and may be several and empty") {
    const A a{1, 2}, b({2, 1}, {3, 4}), nothing({0}, {});
    const auto checked = gradcheck([](const Inputs& x) { return x[0] * x[1] + sum(x[2]); }, {a, b, nothing},
                                   {.tolerance = 1e-7, .seed = 9});
    INFO(checked.report);
    CHECK(checked.ok);
    CHECK(a.to_vector() == std::vector<double>{1, 2});
}
