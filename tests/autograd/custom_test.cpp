// Tests that a mistake in the backward function of custom() throws an Error and leaves no wrong gradient.
#include "tally/autograd/ops/custom.hpp"

#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

using A = Array<float>;

template <class Backward> Tensor with_backward(Backward backward, Tensor x) {
    return custom(
        "own", [](const A& of) { return of.clone(); }, std::move(backward), std::move(x));
}

}  // namespace

TEST_CASE("custom: an Error gives the number of inputs when the backward function uses another index") {
    const Tensor x = parameter({1.0f, 2.0f});
    const std::string message =
        "[gradient] the backward function of 'own' uses input 1, but the operation has 1 input; the first "
        "input has number 0";
    const auto adds = [](GradInputs<A> to, const A& dy, const A&, const A&) { to.add(1, dy); };
    const auto overwrites = [](GradInputs<A> to, const A&, const A&, const A&) { to.into(1); };
    const auto queries = [](GradInputs<A> to, const A&, const A&, const A&) { (void)to.needs_grad(1); };
    CHECK_THROWS_WITH(sum(with_backward(adds, x)).backward(), message);
    CHECK_THROWS_WITH(sum(with_backward(overwrites, x)).backward(), message);
    CHECK_THROWS_WITH(sum(with_backward(queries, x)).backward(), message);
    const auto runs_backward = [&](GradInputs<A> to, const A& dy, const A&,
                                   const A&) {  // this function runs another backward pass before its mistake
        const Tensor other = parameter({1.0f});
        (other * 2).backward();
        to.add(1, dy);
    };
    CHECK_THROWS_WITH(sum(with_backward(runs_backward, x)).backward(), message);
}

TEST_CASE("custom: no gradient is left when the backward function throws before it has written") {
    const Tensor w = parameter(A::full({4}, 1));
    const auto throws = [](GradInputs<A> to, const A&, const A&, const A&) {
        detail::grad_buffer(to.into(0));
        throw Error("boom");
    };
    CHECK_THROWS_WITH(sum(with_backward(throws, w)).backward(), "boom");
    CHECK_FALSE(w.has_grad());
    sum(w * 3).backward();
    CHECK(w.grad().to_vector() == std::vector<float>(4, 3.f));
    CHECK_THROWS_WITH(sum(with_backward(throws, w)).backward(), "boom");
    CHECK(w.grad().to_vector() == std::vector<float>(4, 3.f));  // the gradient of the earlier pass is kept
    w.zero_grad();
    CHECK_THROWS_WITH(sum(with_backward(throws, w)).backward(), "boom");
    CHECK_FALSE(w.has_grad());
}

TEST_CASE("custom: gradients of other operations stay when a backward function or a hook throws") {
    const Tensor w = parameter(A::full({4}, 1));
    const std::vector<float> written(4, 3.f);
    const Tensor older =
        with_backward([](GradInputs<A>, const A&, const A&, const A&) { throw Error("boom"); }, w);
    const Tensor loss = sum(older) + sum(w * 3);
    SECTION("the backward function throws") { CHECK_THROWS_WITH(loss.backward(), "boom"); }
    SECTION("the hook throws") {
        const auto throws = [&](const detail::VisitedNode<A>& visit) {
            if (&visit.node == older.node()) throw Error("seen");
        };
        CHECK_THROWS_WITH(loss.backward(throws), "seen");
    }
    CHECK(w.grad().to_vector() == written);
}

TEST_CASE("custom: a chain of 300,000 backward functions is freed without recursion") {
    const std::int64_t before = Node::live_count();
    for (const bool run_backward : {false, true}) {
        const Tensor x = parameter({1.0f});
        Tensor h = x;
        for (int i = 0; i < 300'000; ++i) {
            const Tensor held = h;
            h = with_backward([held](GradInputs<A> to, const A& dy, const A&, const A&) { to.add(0, dy); },
                              h);
        }
        if (run_backward) {
            h.backward();
            CHECK(x.grad().item() == 1);
        }
        h = Tensor();
        CHECK(Node::live_count() == before + 1);
    }
    CHECK(Node::live_count() == before);
}
