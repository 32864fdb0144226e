// Tests that sgd_step() changes only parameters that have a gradient, and that training works.
#include <cmath>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

TEST_CASE("sgd_step: subtracts learning rate times gradient") {
    const Tensor w = parameter({1.0f, -2.0f});
    const Scalar x = parameter(3.0);
    sum(w * w).backward();
    (x * x).backward();
    const float* home = w.value().data();
    sgd_step({w}, 0.25);
    sgd_step({x}, 0.25);
    CHECK(w.value().to_vector() == std::vector<float>{0.5f, -1});
    CHECK(x.value() == 1.5);
    CHECK(w.value().data() == home);
    CHECK(w.grad().to_vector() == std::vector<float>{2, -4});  // a step does not change the gradient
    CHECK(in_use(MemoryClass::parameter) >= 64);
}

TEST_CASE("sgd_step: all handles of a parameter see the step") {
    const Tensor w = parameter({1.0f});
    const Tensor same = w;
    sum(w).backward();
    sgd_step(std::vector<Tensor>{same}, 1);
    CHECK(w.item() == 0);
}

TEST_CASE("add_scaled: throws Error when the gradient has another shape") {
    Array<float> x{1, 2};
    CHECK_THROWS_WITH(add_scaled(x, 1, Array<float>{1, 2, 3}),
                      contains("the value has shape (2), the gradient has shape (3)"));
    CHECK(x.to_vector() == std::vector<float>{1, 2});
}
