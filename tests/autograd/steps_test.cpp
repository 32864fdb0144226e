// sgd_step: in place, only where a gradient has arrived, for every kind of value; and a small
// training that converges.
#include <cmath>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/values/array.hpp"

using namespace tally;
using namespace tally::test;

TEST_CASE("a step moves against the gradient by the learning rate") {
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
    CHECK(w.grad().to_vector() == std::vector<float>{2, -4});  // a step leaves the gradient alone
    CHECK(in_use(MemoryClass::parameter) >= 64);
}

TEST_CASE("handles of one parameter see the same step") {
    const Tensor w = parameter({1.0f});
    const Tensor same = w;
    sum(w).backward();
    sgd_step(std::vector<Tensor>{same}, 1);
    CHECK(w.item() == 0);
}

TEST_CASE("a gradient of another shape is never stepped with") {
    Array<float> x{1, 2};
    CHECK_THROWS_WITH(add_scaled(x, 1, Array<float>{1, 2, 3}),
                      contains("the value is shape (2), the gradient shape (3)"));
    CHECK(x.to_vector() == std::vector<float>{1, 2});
}

TEMPLATE_TEST_CASE("least squares is solved, with one batch and with micro-batches", "", float, double) {
    using S = TestType;
    const std::int64_t rows_at_a_time = GENERATE(8, 2);
    Random random(3);
    const Array<S> data = random.array<S>({8, 2});
    std::vector<S> targets;
    for (std::size_t i = 0; i < 8; ++i)
        targets.push_back(2 * data.span()[2 * i] - 3 * data.span()[2 * i + 1] + 1);
    const Var<Array<S>> x = constant(data), t = constant(Array<S>({8, 1}, targets)),
                        w = parameter(Array<S>::zeros({2, 1})), b = parameter(Array<S>::zeros({1}));
    for (int step = 0; step < 400; ++step) {
        for (std::int64_t from = 0; from < 8; from += rows_at_a_time)
            (mse(linear(slice(x, 0, from, from + rows_at_a_time), w, b),
                 slice(t, 0, from, from + rows_at_a_time))
                 .sum /
             8)
                .backward();
        sgd_step({w, b}, 0.1);
        w.zero_grad();
        b.zero_grad();
    }
    CHECK(std::abs(w.value().span()[0] - 2) < 1e-4);
    CHECK(std::abs(w.value().span()[1] + 3) < 1e-4);
    CHECK(std::abs(b.value().span()[0] - 1) < 1e-4);
}
