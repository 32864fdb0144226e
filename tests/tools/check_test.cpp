// Tests that CheckRules throws an Error with the operation's name if a backward function is faulty. All
// operations of tally pass the check.
#include "tally/tools/check_rules.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/operations.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/tools/gradcheck.hpp"

using namespace tally;
using namespace tally::test;

namespace {

using A = Array<double>;
using Rule = std::function<void(GradInputs<A>, const A& dy, const A& y, const A& x)>;

double* writable_data(const A& x) { return const_cast<double*>(x.data()); }

Tensor64 doubled(Rule rule, Tensor64 x) {
    return custom(
        "doubled", [](const A& of) { return zip(functor::Add{}, of, of); }, std::move(rule), std::move(x));
}

void add_2_dy(GradInputs<A> to, const A& dy, const A&, const A&) { to.add(0, zip(functor::Add{}, dy, dy)); }

std::string checked(const Rule& rule) {
    const CheckRules check;
    return message_of([&] {
        const Tensor64 x = parameter({1.0, 2.0, 3.0});
        sum(doubled(rule, x * x)).backward();
    });
}

// Returns the message of gradcheck's Error, or "no error".
std::string gradcheck_error(const Rule& rule) {
    return message_of([&] {
        gradcheck([&](const std::vector<Tensor64>& x) { return doubled(rule, x[0] * x[0]); },
                  {A{1.0, 2.0, 3.0}});
    });
}

// Returns the error message of a backward pass. In this backward pass `rule` must add to the gradient of x,
// because the product has already written this gradient.
std::string error_when_adding(const Rule& rule, const std::function<void(const Tensor64&)>& after = {}) {
    return message_of([&] {
        const Tensor64 x = parameter({1.0, 2.0, 3.0});
        const Tensor64 y = doubled(rule, x);
        (sum(y) + sum(x * constant(A{1, 10, 100}))).backward();
        if (after) after(x);
    });
}

const Rule assigns = [](GradInputs<A> to, const A& dy, const A&, const A&) {
    const Into<double[]> dx = detail::grad_buffer(to.into(0));
    for (std::size_t i = 0; i < dy.size(); ++i) dx.dst[i] = 2 * dy.span()[i];
};
const Rule adds = [](GradInputs<A> to, const A& dy, const A&, const A&) {
    const Into<double[]> dx = detail::grad_buffer(to.into(0));
    for (std::size_t i = 0; i < dy.size(); ++i) dx.dst[i] += 2 * dy.span()[i];
};
const Rule requests_only = [](GradInputs<A> to, const A&, const A&, const A&) { to.into(0); };

constexpr const char* assigned_all =
    "[check] the backward function of 'doubled' assigned 3 elements of the gradient of input 0, although "
    "into() returned Write::add; add to dst, as Into::how says, or use add()";

}  // namespace

TEST_CASE("CheckRules: a backward function that changes its operands throws an Error with its name") {
    CHECK(checked(add_2_dy) == "no error");
    const auto changes = [](int which) {
        return [which](GradInputs<A> to, const A& dy, const A& y, const A& x) {
            to.add(0, zip(functor::Add{}, dy, dy));
            *writable_data(which == 0 ? dy : which == 1 ? y : x) += 1;
        };
    };
    const char* const names[] = {"dy", "saved value 0", "saved value 1"};
    for (int which = 0; which < 3; ++which) {
        const std::string expected = std::string("[check] the backward function of 'doubled' changed ") +
                                     names[which] + ", which is read-only; change a copy through writable()";
        CHECK(checked(changes(which)) == expected);
        CHECK(gradcheck_error(changes(which)) == expected);
    }
}

TEST_CASE("CheckRules: a backward function that ignores Write::add or Write::set throws an Error") {
    const Rule leaves_out = [](GradInputs<A> to, const A& dy, const A&, const A&) {
        const Into<double[]> dx = detail::grad_buffer(to.into(0));
        for (std::size_t i = 1; i < dy.size(); ++i)
            dx.dst[i] = (dx.how == Write::add ? dx.dst[i] : 0) + 2 * dy.span()[i];
    };
    const Rule obeys = [](GradInputs<A> to, const A& dy, const A&, const A&) {
        const Into<double[]> dx = detail::grad_buffer(to.into(0));
        for (std::size_t i = 0; i < dy.size(); ++i)
            dx.dst[i] = (dx.how == Write::add ? dx.dst[i] : 0) + 2 * dy.span()[i];
    };
    for (const auto& check : {checked, gradcheck_error}) {
        CHECK(check(obeys) == "no error");
        CHECK(check(assigns) == assigned_all);
        CHECK(check(adds) ==
              "[check] the backward function of 'doubled' did not set 3 elements of the gradient of input 0, "
              "although into() returned Write::set; assign every element");
        CHECK(check(leaves_out) ==
              "[check] the backward function of 'doubled' did not set 1 element of the gradient of input 0, "
              "although into() returned Write::set; assign every element");
    }
}

TEST_CASE("CheckRules: a backward function that requests and does not write a gradient throws an Error") {
    const Rule no_write = [](GradInputs<A> to, const A&, const A&, const A&) {
        detail::grad_buffer(to.into(0));
    };
    CHECK(
        checked(requests_only) ==
        "[check] the backward function of 'doubled' called into() for input 0 and wrote nothing; call into() "
        "only right before a write");
    CHECK_THAT(checked(no_write), contains("did not set 3 elements of the gradient of input 0"));
    CHECK(gradcheck_error(requests_only) == checked(requests_only));
    const Tensor64 x = parameter({1.0, 2.0, 3.0});
    CHECK_THROWS_WITH(sum(doubled(requests_only, x)).backward(), contains("gave no gradient to input 0"));
    CHECK_FALSE(x.has_grad());
}

TEST_CASE("CheckRules: writing to a saved array by a pointer kept from writable() throws an Error") {
    const CheckRules check;
    A a{1, 2, 3};
    double* const kept = a.writable();
    const Tensor64 w = parameter({1.0, 1.0, 1.0});
    const Tensor64 loss = sum(constant(a) * w);
    kept[0] = 100;
    CHECK_THROWS_WITH(
        loss.backward(),
        contains("[check] 'mul' saved an array of shape (3) for backward(), and the array was then "
                 "changed through an old pointer from writable() or data()"));
    CHECK_FALSE(w.has_grad());
    const Tensor64 again = sum(constant(a) * w);
    a.writable()[0] = 7;  // the array is shared, so writable() copies it first
    again.backward();
    CHECK(w.grad().to_vector() == std::vector<double>{100, 2, 3});
}

TEST_CASE("CheckRules: no build checks backward functions without it") {
    const auto expect_unchecked = [] {
        CHECK_FALSE(instrumentation::checks);
        CHECK(error_when_adding(assigns) == "no error");
        CHECK_THAT(error_when_adding(requests_only), contains("gave no gradient to input 0"));
        A a{1, 2, 3};
        double* const kept = a.writable();
        const Tensor64 loss = sum(constant(a) * parameter({1.0, 1.0, 1.0}));
        kept[0] = 100;
        CHECK(message_of([&] { loss.backward(); }) == "no error");
    };
    expect_unchecked();
    const CheckRules check;
    std::thread(expect_unchecked).join();  // this thread has no CheckRules
    CHECK(error_when_adding(assigns) == assigned_all);
}

TEST_CASE("CheckRules: it changes no gradient") {
    struct Found {
        std::vector<double> gradient, second;
    };
    const Rule writes = [](GradInputs<A> to, const A& dy, const A&, const A& x) {
        map_back(functor::Tanh{}, dy, x, to.into(0), to.can_reuse_dy());
    };
    const auto find = [](const Rule& rule) {
        const Tensor64 x = parameter(A::full({1000}, 0.1)), z = parameter(A::full({1000}, 0.3));
        // backward() sets the gradient of `set`, and adds to the gradient of x.
        const Tensor64 set = parameter(A::full({1000}, 0.7));
        sum(set * 2.0).backward();
        set.zero_grad();  // keeps the buffer of the gradient
        const Tensor64 twice = custom(
            "both", [](const A& a, const A& b) { return zip(functor::Mul{}, a, b); },
            [](GradInputs<A> to, const A& dy, const A&, const A& a, const A& b) {
                to.add(0, zip(functor::Mul{}, dy, b));
                to.add(1, zip(functor::Mul{}, dy, a));
            },
            x, set);
        (sum(doubled(rule, x)) + sum(x + doubled(rule, x * z)) + sum(twice)).backward();
        return Found{x.grad().to_vector(), set.grad().to_vector()};
    };
    for (const Rule& rule : {Rule(add_2_dy), writes}) {
        const Found plain = find(rule);
        const CheckRules check;
        const Found found = find(rule);
        CHECK(found.gradient == plain.gradient);
        CHECK(found.second == plain.second);
    }
}

TEST_CASE("CheckRules: a backward function that runs another backward pass is not checked") {
    const Tensor64 v = parameter({5.0});
    const auto runs_backward = [&v](GradInputs<A> to, const A& dy, const A&, const A&) {
        sum(v * 3).backward();
        to.add(0, zip(functor::Add{}, dy, dy));
    };
    const auto look = [](const Tensor64& x) {
        CHECK(x.grad().to_vector() == std::vector<double>{3, 12, 102});
    };
    const CheckRules check;
    CHECK(error_when_adding(runs_backward, look) == "no error");
    CHECK(v.grad().item() == 3);
}

TEST_CASE("CheckRules: a backward function that throws leaves earlier gradients unchanged") {
    const CheckRules check;
    const Tensor64 x = parameter({1.0, 2.0, 3.0});
    sum(x).backward();
    const auto throws = [](GradInputs<A> to, const A& dy, const A&, const A&) {
        detail::grad_buffer(to.into(0));
        if (dy.size()) throw Error("boom");
    };
    CHECK_THROWS_WITH(sum(doubled(throws, x)).backward(), "boom");
    CHECK(x.grad().to_vector() == std::vector<double>{1, 1, 1});
    CHECK_THROWS_WITH(sum(doubled(assigns, x)).backward(), assigned_all);
    CHECK(x.grad().to_vector() == std::vector<double>{1, 1, 1});
    sum(doubled(add_2_dy, x)).backward();
    CHECK(x.grad().to_vector() == std::vector<double>{3, 3, 3});
}

TEST_CASE("CheckRules: the checks end with the object") {
    {
        const CheckRules check;
        CHECK(instrumentation::checks);
        { const CheckRules inner; }
        CHECK(instrumentation::checks);
    }
    CHECK_FALSE(instrumentation::checks);
    const bool poisoned = memory::detail::set_poison(false);
    { const CheckRules check; }
    CHECK_FALSE(memory::detail::set_poison(poisoned));
}

TEST_CASE("CheckRules: no operation changes its operands or ignores Write") {
    const CheckRules check;
    for (const OperationCase<double>& operation : all_operations<double>()) {
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
            Random random(seed);
            const Problem<double> problem = operation.draw(random);
            INFO(operation.name << ", seed " << seed);
            std::vector<Tensor64> xs;
            for (const auto& input : problem.inputs) xs.push_back(parameter(input.clone()));
            for (int round = 0; round < 2; ++round)  // round 0 sets the gradient, round 1 adds to it
                CHECK_NOTHROW(sum(problem.f(xs)).backward());
        }
    }
}
