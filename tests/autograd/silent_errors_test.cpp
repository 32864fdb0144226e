// Tests that plausible programs with variables, shapes and custom operations are right or throw an Error.
#include <thread>

#include "catch.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/tally.hpp"
#include "tally/train/module.hpp"

namespace tally::test {
namespace {

using A = Array<float>;
using V = std::vector<float>;

TEST_CASE("Var: the value and shape of a temporary stay valid after it ends") {
    const Tensor w = parameter({1.f, 2.f});
    const auto& y = (w * 2).value();
    const auto& shape = ones({2, 5}).shape();
    const Tensor other = ones({2}) * 7;  // would overwrite y if the memory of y were freed
    CHECK(y.to_vector() == V{2, 4});
    CHECK(shape == Shape{2, 5});
    sum(w).backward();
    const auto& gradient = Tensor(w).grad();
    CHECK(gradient.to_vector() == V{1, 1});
}

TEST_CASE("Shape: counts negative axes from the end, and throws Error for an axis out of range") {
    const Shape shape{2, 5};
    CHECK(shape[-1] == 5);
    CHECK(shape[-2] == 2);
    CHECK_THROWS_WITH(shape[2], "[shape] axis 2 is out of range for (2, 5): valid are -2 to 1");
    CHECK_THROWS_WITH(shape[-3], contains("axis -3 is out of range"));
    CHECK_THROWS_WITH(shape[6], contains("axis 6 is out of range"));
    CHECK_THROWS_WITH(shape[std::int64_t{1} << 40], contains("is out of range"));
    CHECK_THROWS_WITH(Shape{}[0], contains("it has no axes"));
}

// Returns a * b. The backward function computes gradients only for the inputs whose indices are in
// `to_inputs`.
Tensor product(Tensor a, Tensor b, std::vector<std::size_t> to_inputs) {
    return custom(
        "product", [](const A& p, const A& q) { return A({1}, {p.item() * q.item()}); },
        [to_inputs](GradInputs<A> to, const A& dy, const A&, const A& p, const A& q) {
            for (const std::size_t i : to_inputs)
                if (to.needs_grad(i)) to.add(i, A({1}, {dy.item() * (i == 0 ? q : p).item()}));
        },
        std::move(a), std::move(b));
}

TEST_CASE(
    "custom: throws Error when the backward function omits an input, even if another use reaches the input") {
    const Tensor u = parameter({1.f}), w = parameter({3.f});
    product(u, w, {0, 1}).backward();
    CHECK(u.grad().item() == 3);
    CHECK(w.grad().item() == 1);
    u.zero_grad(), w.zero_grad();
    CHECK_THROWS_WITH((product(u, w, {0}) + w * 0.5).backward(), contains("product"));
    CHECK_FALSE(u.has_grad());
    CHECK_NOTHROW(product(u, constant({3.f}), {0}).backward());  // a constant needs no gradient
    CHECK(u.grad().item() == 3);
}

TEST_CASE("custom: a backward function may set where it should add") {
    const auto twice = [](Tensor x) {
        return custom(
            "twice", [](const A& in) { return A({1}, {2 * in.item()}); },
            [](GradInputs<A> to, const A& dy, const A&, const A&) {
                detail::grad_buffer(to.into(0)).dst[0] = 2 * dy.item();
            },
            std::move(x));
    };
    const Tensor w = parameter({1.f});
    twice(w).backward();
    CHECK(w.grad().item() == 2);
    twice(w).backward();  // simulates a second micro-batch
    CHECK(w.grad().item() == 4);
    const Tensor h = w * 1;
    (twice(h) + twice(h) + h).backward();  // this sum reads an inner node three times
    CHECK(w.grad().item() == 9);
}

TEST_CASE("custom: throws Error when the forward function returns no memory") {
    const Tensor w = parameter({1.f});
    const auto empty = [](const A&) { return A(); };
    const auto nothing = [](GradInputs<A>, const A&, const A&, const A&) {};
    CHECK_THROWS_WITH(custom("mine", empty, nothing, w),
                      "[mine] its forward function returned an array without memory; return a new array");
}

TEST_CASE("modify_value: leaves NaN and throws Error when the function moves the value's memory away") {
    for (const bool assigns : {false, true}) {
        const Tensor w = parameter({1.f, 2.f});
        const auto take = [&](A& v) {
            if (assigns)
                v = A();
            else
                const A out = std::move(v);
        };
        CHECK_THROWS_WITH(
            w.modify_value(take),
            contains("[modify_value] the function left the parameter of shape (2) without a value"));
        CHECK(std::isnan((w * 2).value().to_vector()[1]));
        w.assign(A{5, 6});
        CHECK((w * 2).value().to_vector() == V{10, 12});
    }
}

TEST_CASE("Tensor: a copy in another thread throws Error there and leaves the handle count unchanged") {
    const Tensor data = ones({4, 2});
    int rejected = 0;
    std::thread([&] {
        try {
            const Tensor copy = data;
        } catch (const Error& error) {
            rejected += std::string(error.what()).find("thread") != std::string::npos;
        }
        try {
            for (const Tensor& micro : split(data, 2)) CHECK(micro);
        } catch (const Error&) {
            ++rejected;
        }
    }).join();
    CHECK(rejected == 2);
    CHECK(data.node()->handles == 1);
}

}  // namespace
}  // namespace tally::test
