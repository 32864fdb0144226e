// Operations of one's own: what their rules may do wrong, and what it leaves behind.
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

template <class Rule> Tensor with_rule(Rule rule, Tensor x) {
    return custom(
        "own", [](const A& of) { return of.clone(); }, std::move(rule), std::move(x));
}

}  // namespace

TEST_CASE("a rule that names an input which is not there is told how many there are") {
    const Tensor x = parameter({1.0f, 2.0f});
    const std::string told =
        "[gradient] the backward function of 'own' uses input 1, but the operation has 1 input; count inputs "
        "from 0";
    const auto gives = [](GradInputs<A> to, const A& dy, const A&, const A&) { to.add(1, dy); };
    const auto asks = [](GradInputs<A> to, const A&, const A&, const A&) { to.into(1); };
    const auto wonders = [](GradInputs<A> to, const A&, const A&, const A&) { (void)to.needs_grad(1); };
    CHECK_THROWS_WITH(sum(with_rule(gives, x)).backward(), told);
    CHECK_THROWS_WITH(sum(with_rule(asks, x)).backward(), told);
    CHECK_THROWS_WITH(sum(with_rule(wonders, x)).backward(), told);
    const auto sweeps = [&](GradInputs<A> to, const A& dy, const A&,
                            const A&) {  // another graph, and then the mistake
        const Tensor other = parameter({1.0f});
        (other * 2).backward();
        to.add(1, dy);
    };
    CHECK_THROWS_WITH(sum(with_rule(sweeps, x)).backward(), told);
}

TEST_CASE("a rule that throws before it has written leaves no gradient") {
    const Tensor w = parameter(A::full({4}, 1));
    const auto throws = [](GradInputs<A> to, const A&, const A&, const A&) {
        output_buffer(to.into(0));
        throw Error("boom");
    };
    CHECK_THROWS_WITH(sum(with_rule(throws, w)).backward(), "boom");
    CHECK_FALSE(w.has_grad());
    sum(w * 3).backward();  // sets
    CHECK(w.grad().to_vector() == std::vector<float>(4, 3.f));
    CHECK_THROWS_WITH(sum(with_rule(throws, w)).backward(), "boom");
    CHECK(w.grad().to_vector() == std::vector<float>(4, 3.f));  // one that was there stays
    w.zero_grad();
    CHECK_THROWS_WITH(sum(with_rule(throws, w)).backward(), "boom");
    CHECK_FALSE(w.has_grad());
}

TEST_CASE("what other rules have written stays when one throws, or who looks on") {
    const Tensor w = parameter(A::full({4}, 1));
    const std::vector<float> written(4, 3.f);
    const Tensor older =
        with_rule([](GradInputs<A>, const A&, const A&, const A&) { throw Error("boom"); }, w);
    const Tensor loss = sum(older) + sum(w * 3);
    SECTION("the rule") { CHECK_THROWS_WITH(loss.backward(), "boom"); }
    SECTION("who looks on") {
        const auto throws = [&](const detail::VisitedNode<A>& visit) {
            if (&visit.node == older.node()) throw Error("seen");
        };
        CHECK_THROWS_WITH(loss.backward(throws), "seen");
    }
    CHECK(w.grad().to_vector() == written);
}

TEST_CASE("a long chain of rules that hold their inputs is let go without a stack") {
    const std::int64_t before = live_nodes();
    for (const bool sweep : {false, true}) {
        const Tensor x = parameter({1.0f});
        Tensor h = x;
        for (int i = 0; i < 300'000; ++i) {
            const Tensor held = h;
            h = with_rule([held](GradInputs<A> to, const A& dy, const A&, const A&) { to.add(0, dy); }, h);
        }
        if (sweep) {
            h.backward();
            CHECK(x.grad().item() == 1);
        }
        h = Tensor();
        CHECK(live_nodes() == before + 1);
    }
    CHECK(live_nodes() == before);
}
