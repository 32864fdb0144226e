// Tests invariant 10. No operation changes a recorded array in place. If the program changes a recorded
// array, backward() throws an Error.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/ops/where.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

Array<float> a_matrix() { return Array<float>({2, 2}, {1, 2, 3, 4}); }

}  // namespace

TEST_CASE("invariant 10: a step between forward and backward throws Error with both versions") {
    const Tensor w = parameter({1.0f, 2.0f}), x = parameter({3.0f, 4.0f});
    sum(w).backward();
    const Tensor loss = sum(w * x);
    sgd_step({w}, 0.1);
    CHECK_THROWS_WITH(
        loss.backward(),
        "[backward] 'mul' saved version 0 of an array of (2), which is now at version 1: the "
        "array was changed in place between forward and backward; step the optimizer after backward()");
    const Tensor again = sum(w * x);
    sgd_step({w}, 0.1);
    CHECK_THROWS_WITH(again.backward(),
                      contains("saved version 1 of an array of (2), which is now at version 2"));
}

TEST_CASE("invariant 10: a step also throws when the parameter's buffer is shared with a copy") {
    const Tensor w = parameter({1.0f, 2.0f}), x = parameter({3.0f, 4.0f});
    sum(w).backward();
    const Array<float> copy = w.value();
    const Tensor loss = sum(w * x);
    sgd_step({w}, 1);
    CHECK(copy.to_vector() == std::vector<float>{1, 2});
    CHECK(w.value().to_vector() == std::vector<float>{0, 1});
    CHECK_THROWS_WITH(loss.backward(), contains("'mul' saved version 0"));
}

TEST_CASE("invariant 10: parameters made from one array are stepped separately") {
    const Array<float> start{1.0f, 2.0f};
    const Tensor a = parameter(start), b = parameter(start);
    sum(a).backward();
    const Tensor loss = sum(b * b);
    sgd_step({a}, 1);
    CHECK_NOTHROW(loss.backward());
    CHECK(b.grad().to_vector() == std::vector<float>{2, 4});
    CHECK(memory::detail::memory_class(start.storage()) == MemoryClass::temporary);
}

TEST_CASE("invariant 10: writing to a copy does not change the original") {
    const Tensor w = parameter({1.0f, 2.0f}), x = parameter({3.0f, 4.0f});
    const Tensor loss = sum(w * x);
    Array<float> copy = w.value();
    copy.writable()[0] = 7;
    CHECK_NOTHROW(loss.backward());
    CHECK(x.grad().to_vector() == std::vector<float>{1, 2});
}

TEST_CASE("invariant 10: saved labels, conditions and indices keep their values") {
    const Tensor x = parameter(a_matrix());
    using Build = Tensor (*)(const Tensor&, const Array<std::int32_t>&);
    const std::vector<std::pair<const char*, Build>> builds{
        {"cross_entropy",
         [](const Tensor& a, const Array<std::int32_t>& i) { return cross_entropy(a, i).sum; }},
        {"where", [](const Tensor& a, const Array<std::int32_t>& i) { return sum(where(i, a, exp(a))); }},
        {"rows", [](const Tensor& a, const Array<std::int32_t>& i) { return sum(rows(a, i)); }},
    };
    for (const auto& [name, build] : builds) {
        INFO(name);
        const Array<std::int32_t> untouched({2}, {0, 1});
        const std::vector<float> expected = grad(build(x, untouched), {x})[0].to_vector();
        Array<std::int32_t> chosen({2}, {0, 1});
        const Tensor loss = build(x, chosen);
        chosen.writable()[0] = 1;
        CHECK(chosen.to_vector() == std::vector<std::int32_t>{1, 1});
        CHECK(grad(loss, {x})[0].to_vector() == expected);
    }
}

TEST_CASE("invariant 10: a saved value keeps its content with and without a handle") {
    using A = Array<double>;
    // The backward function of own_sigmoid writes only to copies of the saved values.
    const auto own_sigmoid = [](Tensor64 of) {
        return custom(
            "own_sigmoid", [](const A& x) { return map(functor::Sigmoid{}, x); },
            [](GradInputs<A> to, const A& dy, const A& y, const A& x) {
                A rest = y, slope = x;
                for (std::size_t i = 0; i < y.size(); ++i) {
                    rest.writable()[i] = 1 - y.span()[i];
                    slope.writable()[i] = dy.span()[i] * y.span()[i] * rest.span()[i] + 0 * x.span()[i];
                }
                to.add(0, slope);
            },
            std::move(of));
    };
    const Tensor64 x = parameter({0.5, -1.0});
    const std::vector<double> expected = grad(sum(sigmoid(x * 1.5) * 2), {x})[0].to_vector();
    const Tensor64 held = own_sigmoid(x * 1.5);
    const std::vector<double> with_handle = grad(sum(held * 2), {x})[0].to_vector(),
                              without = grad(sum(own_sigmoid(x * 1.5) * 2), {x})[0].to_vector();
    for (std::size_t i = 0; i < 2; ++i) CHECK(std::abs(without[i] - expected[i]) < 1e-15);
    CHECK(with_handle == without);
}

TEST_CASE("invariant 10: a parameter that gets another buffer between forward and backward throws Error") {
    const Tensor w = parameter({1.0f, 2.0f}), x = parameter({3.0f, 4.0f});
    const Tensor loss = sum(w * x);
    const std::size_t parameters = in_use(MemoryClass::parameter);
    w.modify_value([](Array<float>& value) { value = Array<float>{30, 40}; });
    CHECK_THROWS_WITH(loss.backward(), contains("'mul' saved version 0 of an array of (2)"));
    const Tensor again = sum(w * x);
    w.modify_value([](Array<float>& value) { value.writable()[0] = 3; });
    CHECK(w.value().to_vector() == std::vector<float>{3, 40});
    CHECK(again.item() == 30 * 3 + 40 * 4);
    CHECK_THROWS_WITH(again.backward(), contains("'mul' saved version"));
    CHECK(in_use(MemoryClass::parameter) <= parameters);
}

TEST_CASE("invariant 10: every operation that saves a parameter finds the change") {
    const Tensor w = parameter(a_matrix()), other = parameter(a_matrix());
    sum(w).backward();
    using Build = Tensor (*)(const Tensor&, const Tensor&);
    const std::vector<std::pair<const char*, Build>> builds{
        {"matmul", [](const Tensor& a, const Tensor& b) { return matmul(b, a); }},
        {"linear", [](const Tensor& a, const Tensor& b) { return linear(b, a); }},
        {"max", [](const Tensor& a, const Tensor&) { return max(a, {0}); }},
        {"log", [](const Tensor& a, const Tensor&) { return log(a); }},
        {"div", [](const Tensor& a, const Tensor& b) { return b / a; }},
        {"mul", [](const Tensor& a,
                   const Tensor& b) { return reshape(a, {4}) * reshape(b, {4}); }},  // both factors are views
    };
    for (const auto& [name, build] : builds) {
        const Tensor loss = sum(build(w, other));
        sgd_step({w}, 0.01);
        CHECK_THROWS_WITH(loss.backward(), contains(std::string("[backward] '") + name + "' saved version"));
    }
    const Tensor fine = sum(w + other);  // addition saves no values
    sgd_step({w}, 0.01);
    CHECK_NOTHROW(fine.backward());
}

TEST_CASE("invariant 10: scalars are copied into the operation and need no version") {
    const Scalar x = parameter(3.0);
    (x * 1.0).backward();
    const Scalar y = x * x;
    sgd_step({x}, 1);
    CHECK(x.value() == 2);
    x.zero_grad();
    y.backward();
    CHECK(x.grad() == 6);  // the derivative at the value of the forward pass
}
