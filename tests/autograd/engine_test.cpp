// Tests backward passes with every type of value. Gradients are summed over all paths of a graph, and a graph
// can still be used after an error.
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/where.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/memory/memory.hpp"
#include "tally/tools/graph_picture.hpp"

using namespace tally;
using namespace tally::test;

namespace {

// Kind<T> converts a double to a value of type T, and a value of type T to a double.
template <class T> struct Kind {
    static T make(double x) { return static_cast<T>(x); }
    static double number(const T& x) { return static_cast<double>(x); }
};
template <> struct Kind<Dual<double>> {
    static Dual<double> make(double x) { return {x, 0.5}; }
    static double number(const Dual<double>& x) { return x.value; }
};
template <class S> struct Kind<Array<S>> {
    static Array<S> make(double x) { return Array<S>({1}, {Kind<S>::make(x)}); }
    static double number(const Array<S>& x) { return Kind<S>::number(x.item()); }
};

template <class T> T value(double x) { return Kind<T>::make(x); }
template <class T> T one() { return detail::full_like(value<T>(0), 1); }
template <class T> double number(const T& x) { return Kind<T>::number(x); }

// Returns x * x. The backward function of x * x throws before or after its first contribution to a gradient.
template <class T> Var<T> fragile_square(Var<T> x, int throws_after) {
    Var<T> other = x;
    return custom(
        "fragile", [](const T& a, const T& b) { return zip(functor::Mul{}, a, b); },
        [throws_after](GradInputs<T> to, const T& dy, const T&, const T& a, const T& b) {
            if (throws_after == 0) throw std::runtime_error("the backward function failed");
            zip_back<0>(functor::Mul{}, dy, a, b, dy, to.into(0));
            if (throws_after == 1) throw std::runtime_error("the backward function failed");
            zip_back<1>(functor::Mul{}, dy, a, b, dy, to.into(1));
        },
        std::move(x), std::move(other));
}

// The destructor checks that as many nodes and bytes exist as when the object was constructed.
struct Balance {
    ~Balance() {
        CHECK(Node::live_count() == nodes);
        CHECK(memory::in_use() == bytes);
    }
    std::int64_t nodes = Node::live_count();
    std::size_t bytes = memory::in_use();
};

}  // namespace

#define KINDS double, float, Dual<double>, Array<float>, Array<double>, Array<Dual<double>>

TEMPLATE_TEST_CASE("backward: gradients add up over every path", "", KINDS) {
    using T = TestType;
    const Balance balance;
    const Var<T> x = parameter(value<T>(3));
    const Var<T> y = x * x + 5 * x;  // three paths lead from x to y
    CHECK(number(y.value()) == 24);
    y.backward();
    CHECK(number(x.grad()) == 11);
    const Var<T> diamond = (x + 1) * (x + 2);
    diamond.backward();
    CHECK(number(x.grad()) == 11 + 9);  // the gradients of both graphs are added
}

TEMPLATE_TEST_CASE("backward: the seed weighs the gradient", "", KINDS) {
    using T = TestType;
    const Var<T> x = parameter(value<T>(3));
    (x * x).backward(map(functor::MulNumber{0.5}, one<T>()));
    CHECK(number(x.grad()) == 3);
}

TEMPLATE_TEST_CASE("zero_grad: has_grad() is false and the next gradient replaces the old one", "", KINDS) {
    using T = TestType;
    const Var<T> x = parameter(value<T>(3));
    CHECK_FALSE(x.has_grad());
    CHECK_THROWS_AS(x.grad(), Error);
    (x * x).backward();
    CHECK(x.has_grad());
    x.zero_grad();
    CHECK_FALSE(x.has_grad());
    CHECK_THROWS_AS(x.grad(), Error);
    (x * 2).backward();
    CHECK(number(x.grad()) == 2);
    x.free_grad();
    CHECK_FALSE(x.has_grad());
    (x * 2).backward();
    CHECK(number(x.grad()) == 2);
}

TEMPLATE_TEST_CASE("backward: a parameter can be its own result", "", KINDS) {
    using T = TestType;
    const Var<T> x = parameter(value<T>(3));
    x.backward();
    x.backward();  // backward() may be repeated on a leaf
    CHECK(number(x.grad()) == 2);
}

TEMPLATE_TEST_CASE("grad: returns gradients and leaves the gradients of leaves unchanged", "", KINDS) {
    using T = TestType;
    const Balance balance;
    const Var<T> x = parameter(value<T>(3)), w = parameter(value<T>(4)), alone = parameter(value<T>(5));
    (x * 7).backward();
    {
        const Var<T> inner = x * w;
        const std::vector<T> g = grad(inner * inner + x, {w, inner, x});
        REQUIRE(g.size() == 3);
        CHECK(number(g[0]) == 2 * 12 * 3);
        CHECK(number(g[1]) == 24);
        CHECK(number(g[2]) == 24 * 4 + 1);
        CHECK(number(x.grad()) == 7);
        CHECK_FALSE(w.has_grad());
        CHECK_FALSE(inner.has_grad());
    }
    {  // grad() neither visits nor consumes nodes older than the oldest target
        const Var<T> below = x * w, inner = below * below, y = inner * 5;
        CHECK(number(grad(y, {inner})[0]) == 5);
        CHECK(number(grad(inner * 3 + below, {inner})[0]) == 3);
        CHECK_FALSE(below.has_grad());
        CHECK(number(grad(inner, {below})[0]) == 24);
        CHECK(number(grad(below, {below})[0]) == 1);
        CHECK(number(grad(below, {w})[0]) == 3);
        CHECK(number(grad(x * w, value<T>(2), {w, x})[1]) == 8);
        CHECK_THROWS_WITH(grad(inner, {below}), contains("[grad] a backward pass has already used '"));
        const Var<T> v = parameter(value<T>(2));
        CHECK(number(grad(below * v, {v})[0]) == 12);  // a consumed node can be an operand of a new graph
    }
    const std::string what = detail::describe(x.value());
    CHECK_THROWS_WITH(grad(x * x, {alone}), "[grad] no gradient arrived at input 0 of " + what +
                                                ": the result does not depend on it");
    CHECK_THROWS_WITH(grad(x * x, {x, x}), "[grad] input 1 of " + what + " is asked for twice");
    CHECK_THROWS_WITH(grad(x * x, {x, constant(value<T>(1))}),
                      "[grad] input 1 of " + what + " is a constant: it has no gradient");
    CHECK(number(x.grad()) == 7);
    CHECK_FALSE(alone.has_grad());
    CHECK(number(grad(x * x, {x})[0]) == 6);
    (x * 1).backward();
    CHECK(number(x.grad()) == 8);
}

TEMPLATE_TEST_CASE("NoGrad, detach: operations record nothing", "", KINDS) {
    using T = TestType;
    const Var<T> x = parameter(value<T>(3));
    {
        const NoGrad off;
        const std::int64_t before = Node::live_count();
        const Var<T> y = x * x;
        CHECK_FALSE(y.requires_grad());
        CHECK(number(y.value()) == 9);
        CHECK(Node::live_count() == before + 1);
        { const NoGrad nested; }
        CHECK_FALSE((x * x).requires_grad());
    }
    CHECK((x * x).requires_grad());
    ((x * x).detach() * x).backward();
    CHECK(number(x.grad()) == 9);
    CHECK_THROWS_WITH(x.detach().backward(), contains("depends on no parameter"));
    CHECK_THROWS_WITH((constant(value<T>(1)) * 2).backward(), contains("nothing to differentiate"));
}

TEMPLATE_TEST_CASE("backward: leaves and graph stay usable when a backward function throws", "", KINDS) {
    using T = TestType;
    const Balance balance;
    const int throws_after = GENERATE(0, 1);
    const Var<T> x = parameter(value<T>(3));
    {
        const Var<T> shared = x * 2;
        const Var<T> waiting = tanh(shared);
        const Var<T> y = fragile_square(shared, throws_after) + waiting;
        CHECK_THROWS_WITH(y.backward(), "the backward function failed");
        CHECK_THROWS_WITH(y.backward(), contains("[backward] a backward pass has already used '"));
        CHECK_THROWS_WITH(waiting.backward(), contains("[backward] a backward pass has already used '"));
        CHECK_THROWS_WITH((waiting * 1).backward(),
                          contains("[backward] a backward pass has already used '"));
    }
    CHECK(Node::live_count() == balance.nodes + 1);
    x.zero_grad();
    fragile_square(x, 2).backward();
    CHECK(number(x.grad()) == 6);
}

TEMPLATE_TEST_CASE("backward: leaves stay usable when an observer throws", "", KINDS) {
    using T = TestType;
    const Balance balance;
    const Var<T> x = parameter(detail::full_like(value<T>(0), 1));
    const Var<T> inner = x * 2;
    CHECK_THROWS_WITH((inner * inner).backward([](const detail::VisitedNode<T>& visit) {
        if (std::string(visit.node.op()) == "mul_number") throw std::runtime_error("seen enough");
    }),
                      "seen enough");
    CHECK_THROWS_WITH(inner.backward(), contains("has already used 'mul_number'"));
    CHECK_FALSE(x.has_grad());
    (x * 2).backward();
    CHECK(number(x.grad()) == 2);
}

TEMPLATE_TEST_CASE("Var: handles can be copied, assigned and moved, and unused nodes are freed", "", KINDS) {
    using T = TestType;
    const Balance balance;
    Var<T> x = parameter(value<T>(3));
    Var<T> y = x * x;
    Var<T> same = y;
    y = y * x;  // the old node stays alive, because `same` and the new y refer to it
    Var<T>& alias = same;
    same = alias;
    x = Var<T>(x);
    Var<T> moved = std::move(same);
    CHECK_FALSE(static_cast<bool>(same));  // NOLINT
    moved = Var<T>();
    y.backward();
    CHECK(number(x.grad()) == 27);
    const std::int64_t before = Node::live_count();
    {
        Var<T> unused = tanh(x * x);
        CHECK(Node::live_count() == before + 2);
    }
    CHECK(Node::live_count() == before);
}

TEST_CASE("grad: a leaf that is not an input gets no gradient", "[engine]") {
    const Scalar w = parameter(2.0), v = parameter(3.0);
    CHECK_THROWS_AS(grad(w, {v}), Error);
    CHECK_FALSE(w.has_grad());
    CHECK_FALSE(v.has_grad());
}

TEST_CASE("Array: using an array without memory throws Error", "[engine]") {
    CHECK_THROWS_AS(constant(Array<float>()), Error);
    CHECK_THROWS_AS(Array<float>().clone(), Error);
    Array<std::int32_t> condition({1, 0});
    const Array<std::int32_t> taken = std::move(condition);
    CHECK_THROWS_AS(where(condition, parameter({1.f, 2.f}), parameter({3.f, 4.f})), Error);
    CHECK(taken.size() == 2);
}

TEST_CASE("custom: a gradient for a constant is dropped, but its buffer is an Error", "[engine]") {
    using A = Array<float>;
    const auto product = [](const A& a, const A& b) { return zip(functor::Mul{}, a, b); };
    const auto adds = [](GradInputs<A> to, const A& dy, const A&, const A& a, const A& b) {
        to.add(0, zip(functor::Mul{}, dy, b));
        to.add(1, zip(functor::Mul{}, dy, a));
    };
    const Tensor x = parameter({1.f, 2.f}), w = constant({3.f, 4.f});
    sum(custom("product", product, adds, x, w)).backward();
    CHECK(x.grad().to_vector() == std::vector<float>{3, 4});
    const auto requests_both = [](GradInputs<A> to, const A&, const A&, const A&, const A&) { to.into(1); };
    CHECK_THROWS_AS(sum(custom("product", product, requests_both, x, w)).backward(), Error);
}

TEST_CASE("Picture: shows the gradient of a parameter that has no handle any more", "[engine]") {
    detail::KeepValues keep_values;
    Picture picture;
    picture.backward(mean(parameter({1.f, 2.f}) * 2));
    CHECK(picture.dot().find("1.0000") != std::string::npos);  // the picture shows the parameter's gradient
}
