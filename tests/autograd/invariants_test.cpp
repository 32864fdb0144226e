// Tests the engine's invariants 1 to 5, 7, 8 and 11. footprint_test.cpp tests invariants 6 and 9, which limit
// memory, and versions_test.cpp tests invariant 10.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/base/random.hpp"

using namespace tally;
using namespace tally::test;

namespace {

Array<float> a_matrix() { return Array<float>({2, 2}, {1, 2, 3, 4}); }

}  // namespace

// ---- 1: creation order is a topological order ----

TEST_CASE("invariant 1: backward visits each node once, the newest first") {
    Random random(1);
    const Scalar x = parameter(0.5);
    std::vector<Scalar> nodes{x * 1};
    for (int i = 0; i < 300; ++i) {
        const auto pick = [&] {
            return nodes[static_cast<std::size_t>(random.whole(0, static_cast<int>(nodes.size()) - 1))];
        };
        nodes.push_back(pick() * 0.5 + pick() * 0.25);
    }
    Scalar total = nodes[0];
    for (const Scalar& node : nodes) total = total + node;
    std::vector<std::uint64_t> order;
    total.backward([&](const detail::VisitedNode<double>& visit) { order.push_back(visit.node.id); });
    CHECK(order.size() > 600);
    CHECK(std::is_sorted(order.rbegin(), order.rend()));
    CHECK(std::adjacent_find(order.begin(), order.end()) == order.end());
}

TEST_CASE("invariant 1: a node is visited after all of its consumers") {
    const Scalar x = parameter(2.0);
    const Scalar old = x * x;
    Scalar late = old * 1;
    for (int i = 0; i < 40; ++i) late = late + 0.0;
    const Scalar y = late * old;  // both the newest node and a much older node read `old`
    double arrived = 0;
    y.backward([&](const detail::VisitedNode<double>& visit) {
        if (visit.node.id == old.node()->id) arrived = visit.gradient;
    });
    CHECK(arrived == 8);
    CHECK(x.grad() == 32);
}

TEST_CASE("invariant 1: a chain of a million nodes runs backward and is freed without recursion") {
    const std::int64_t before = Node::live_count();
    const Scalar x = parameter(1.0);
    {
        Scalar y = x;
        for (int i = 0; i < 1'000'000; ++i) y = y + 1.0;
        CHECK(Node::live_count() == before + 1'000'001);
        y.backward();
        CHECK(x.grad() == 1);
        CHECK(Node::live_count() == before + 2);  // after backward() only nodes with a handle exist
    }
    {
        Scalar unused = x;
        for (int i = 0; i < 1'000'000; ++i) unused = unused + 1.0;
    }
    CHECK(Node::live_count() == before + 1);
    std::vector<Scalar> held{x * 1};
    for (int i = 0; i < 100'000; ++i) held.push_back(held.back() + 1.0);
    held.clear();
    CHECK(Node::live_count() == before + 1);
}

TEST_CASE("invariant 1: 2^60 paths cost 60 visits") {
    const Scalar x = parameter(1.0);
    Scalar y = x;
    for (int level = 0; level < 60; ++level) y = y + y;
    int visits = 0;
    y.backward([&](const detail::VisitedNode<double>&) { ++visits; });
    CHECK(visits == 60);
    CHECK(x.grad() == 0x1p60);
}

TEST_CASE("invariant 1: backward keeps its order when more nodes are queued than the sorted list holds") {
    const Scalar x = parameter(3.0);
    std::vector<Scalar> terms;
    for (int i = 0; i < 200; ++i) terms.push_back(x * double(i));
    Random random(7);
    for (std::size_t i = terms.size(); i-- > 1;)
        std::swap(terms[i], terms[static_cast<std::size_t>(random.whole(0, static_cast<int>(i)))]);
    const Scalar all = custom(
        "all", [](double first) { return first; },
        [](GradInputs<double> to, double dy, double, double) { to.add(0, double(dy)); }, terms[0]);
    Scalar total = all;
    for (std::size_t i = 1; i < terms.size(); ++i) total = terms[i] + total;
    std::vector<std::uint64_t> order;
    total.backward([&](const detail::VisitedNode<double>& visit) { order.push_back(visit.node.id); });
    CHECK(std::is_sorted(order.rbegin(), order.rend()));
    CHECK(x.grad() == 199 * 200 / 2);
}

// ---- 2: only leaves keep a gradient ----

TEST_CASE(
    "invariant 2: interior gradients and saved values are freed when their node's backward function has "
    "run") {
    const Tensor w = parameter(Array<float>::full({64, 64}, 0.01f));
    constexpr std::size_t bytes = 64 * 64 * sizeof(float);
    const std::size_t saved_before = in_use(MemoryClass::saved);
    Tensor y = w;
    for (int i = 0; i < 8; ++i) y = tanh(std::move(y));
    const Tensor loss = sum(std::move(y));
    CHECK(in_use(MemoryClass::saved) == saved_before + 8 * bytes);
    const std::size_t before = memory::in_use();
    memory::reset_peak();
    std::vector<std::size_t> saved;
    loss.backward([&](const detail::VisitedNode<Array<float>>&) {
        saved.push_back(in_use(MemoryClass::saved) - saved_before);
    });
    REQUIRE(saved.size() == 9);
    for (std::size_t i = 1; i < 9; ++i) CHECK(saved[i] == (9 - i) * bytes);
    CHECK(in_use(MemoryClass::saved) == saved_before);
    CHECK(memory::peak() <= before + 2 * bytes + 64);  // at most two gradients are allocated at a time
    CHECK(in_use(MemoryClass::gradient) >= bytes);
    CHECK(w.has_grad());
}

TEST_CASE("invariant 2: a result with a handle keeps its value and loses its gradient") {
    const Tensor w = parameter({1.0f, 2.0f});
    const std::size_t saved = in_use(MemoryClass::saved);
    const Tensor inner = (w * 1) * (w * 1);
    CHECK(in_use(MemoryClass::saved) == saved + 128);
    sum(inner * 3).backward();
    CHECK(in_use(MemoryClass::saved) == saved);
    CHECK(inner.value().to_vector() == std::vector<float>{1, 4});
    CHECK_FALSE(inner.has_grad());
    CHECK(inner.node()->gradient.storage() == nullptr);
    CHECK(inner.node()->inputs() == std::vector<Node*>{nullptr, nullptr});
    // The gradient of an inner node is freed even if the backward function cannot reuse its buffer.
    const Tensor square = parameter(Array<float>::full({2, 2}, 1)), product = matmul(square, square);
    sum(product * 3).backward();
    CHECK(product.node()->gradient.storage() == nullptr);
}

TEST_CASE("invariant 2: the hook sees node, value and gradient") {
    const detail::KeepValues keep_values;
    const Tensor w = parameter({1.0f, 2.0f});
    std::vector<std::string> seen;
    sum(w * w).backward([&](const detail::VisitedNode<Array<float>>& visit) {
        seen.push_back(visit.node.op() + to_string(visit.value, 1) + to_string(visit.gradient, 1));
    });
    CHECK(seen == std::vector<std::string>{"sum5.01.0", "mul[1.0 4.0][1.0 1.0]"});
}

TEST_CASE("invariant 2: the hook sees a freed value without KeepValues, never an old one") {
    const Tensor w = parameter({1.0f, 2.0f});
    int without = 0;
    sum(w * w).backward(
        [&](const detail::VisitedNode<Array<float>>& visit) { without += !detail::has_memory(visit.value); });
    CHECK(without == 1);  // only w * w is freed, since the temporary sum(w * w) is a handle
}

// ---- 3: Into ----

TEST_CASE("invariant 3: a variable used as both operands gets both contributions") {
    const Poison poison;
    std::vector<Write> asked;
    const Tensor w = parameter({3.0f, -2.0f});
    const Tensor y = custom(
        "twice", [](const Array<float>& a, const Array<float>& b) { return zip(functor::Mul{}, a, b); },
        [&](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&, const Array<float>& a,
            const Array<float>& b) {
            const auto first = to.into(0);
            asked.push_back(first.how);
            zip_back<0>(functor::Mul{}, dy, a, b, dy, first);
            const auto second = to.into(1);
            asked.push_back(second.how);
            zip_back<1>(functor::Mul{}, dy, a, b, dy, second);
        },
        w, w);
    sum(y).backward();
    // The operand is used twice, so each contribution is written to a separate buffer, and then both
    // contributions are added.
    CHECK(asked == std::vector<Write>{Write::set, Write::set});
    CHECK(w.grad().to_vector() == std::vector<float>{6, -4});
    sum(w * w).backward();
    CHECK(w.grad().to_vector() == std::vector<float>{12, -8});
    sum(matmul(reshape(w, {2, 1}), reshape(w, {1, 2}))).backward();
    CHECK(w.grad().to_vector() == std::vector<float>{14, -6});
}

TEST_CASE("invariant 3: a moved gradient buffer is adopted when it is the first, else its values are added") {
    const float* moved = nullptr;
    const auto move_gradient = [&](const Tensor& x) {
        return custom(
            "move_gradient", [](const Array<float>& a) { return a.clone(); },
            [&](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&,
                const Array<float>&) {
                Array<float> gradient = dy.clone();
                moved = gradient.data();
                to.add(0, std::move(gradient));
            },
            x);
    };
    const Tensor w = parameter({1.0f, 2.0f});
    sum(move_gradient(w)).backward();
    CHECK(w.grad().data() == moved);
    sum(move_gradient(w)).backward();
    CHECK(w.grad().data() != moved);
    CHECK(w.grad().to_vector() == std::vector<float>{2, 2});
    const float* home = w.grad().data();
    w.zero_grad();
    sum(move_gradient(w)).backward();  // zero_grad() has not freed the buffer
    CHECK(w.grad().data() == home);
    CHECK(w.grad().to_vector() == std::vector<float>{1, 1});
}

TEST_CASE("invariant 3: accumulate_into shares the buffer of a gradient when the destination is empty") {
    const Array<float> gradient({2}, {1, 2});
    Array<float> dx;
    accumulate_into(Into<Array<float>>{dx, Write::set}, gradient);
    CHECK(dx.data() == gradient.data());  // `gradient` is alive, so a copy would have a different address
}

TEST_CASE("invariant 3: a leaf does not adopt a gradient buffer that is shared") {
    Array<float> kept;
    const Tensor w = parameter({1.0f, 2.0f});
    const auto share = [&] {
        sum(custom(
                "share", [](const Array<float>& a) { return a.clone(); },
                [&](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&,
                    const Array<float>&) {
                    kept = dy.clone();
                    to.add(0, kept);
                },
                w))
            .backward();
    };
    share();
    CHECK(w.grad().data() != kept.data());
    const Array<float> first = kept;
    share();
    CHECK(first.to_vector() == std::vector<float>{1, 1});
    CHECK(w.grad().to_vector() == std::vector<float>{2, 2});
}

TEST_CASE("invariant 3: an addition hands the buffer of its gradient to its only input") {
    const Tensor w = parameter({1.0f, 2.0f}), v = parameter({3.0f, 4.0f});
    const float* of_sum = nullptr;
    const auto visit = [&](const auto& node) {
        if (std::string(node.node.op()).starts_with("add")) of_sum = node.gradient.data();
    };
    sum(w + constant({5.0f, 6.0f})).backward(visit);
    CHECK(w.grad().data() == of_sum);
    CHECK(memory::detail::ref_count(w.grad().storage()) == 1);
    w.free_grad();
    sum(w + 1).backward(visit);
    CHECK(w.grad().data() == of_sum);
    w.free_grad();
    sum(w + v).backward(visit);
    CHECK(w.grad().data() != v.grad().data());
    CHECK(w.grad().to_vector() == std::vector<float>{1, 1});
    CHECK(v.grad().to_vector() == std::vector<float>{1, 1});
}

TEST_CASE("invariant 3: an addition keeps its gradient if grad() returns the gradient") {
    const Tensor w = parameter({1.0f, 2.0f}), y = w * 2, z = y + constant({5.0f, 6.0f}), u = z + 7;
    const std::vector<Array<float>> all = grad(sum(u + z), {u, z, y, w});
    CHECK(all[0].to_vector() == std::vector<float>{1, 1});
    CHECK(all[1].to_vector() == std::vector<float>{2, 2});
    CHECK(all[2].to_vector() == std::vector<float>{2, 2});
    CHECK(all[3].to_vector() == std::vector<float>{4, 4});
    const Tensor v = parameter({1.0f, 5.0f}), added = w + v, difference = w - v;
    for (const Array<float>& gradient : grad(sum(added * added), {added, w, v}))
        CHECK(gradient.to_vector() == std::vector<float>{4, 14});
    const std::vector<Array<float>> of_difference = grad(sum(difference * difference), {difference, w, v});
    CHECK(of_difference[0].to_vector() == std::vector<float>{0, -6});
    CHECK(of_difference[1].to_vector() == std::vector<float>{0, -6});
    CHECK(of_difference[2].to_vector() == std::vector<float>{0, 6});
}

// ---- 4: Write::set does not read the destination (operations_test.cpp tests every operation) ----

TEST_CASE("invariant 4: an empty sum writes zeros into poisoned memory") {
    const Poison poison;
    const Tensor w = parameter(Array<float>({0, 3}, {}));
    const Tensor totals = sum(w, {0});
    CHECK(totals.value().to_vector() == std::vector<float>{0, 0, 0});
    const Tensor x = parameter(Array<float>({2, 0}, {})), bias = parameter({1.0f, 2.0f, 3.0f});
    const Tensor y = matmul(x, w);
    CHECK(y.value().to_vector() == std::vector<float>(6, 0));
    CHECK(linear(x, w, bias).value().to_vector() == std::vector<float>{1, 2, 3, 1, 2, 3});
    sum(linear(Tensor(Array<float>({0, 2}, {})), parameter(Array<float>::zeros({2, 3})), bias)).backward();
    CHECK(bias.grad().to_vector() == std::vector<float>{0, 0, 0});
    const Tensor v = parameter(Array<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    sum(matmul(Tensor(Array<float>({0, 2}, {})), v)).backward();
    CHECK(v.grad().to_vector() == std::vector<float>(6, 0));
    const Tensor spread = parameter({5.0f});
    sum(spread * Tensor(Array<float>({0, 1}, {}))).backward();
    CHECK(spread.grad().to_vector() == std::vector<float>{0});
}

// ---- 5: a gradient has the shape of its value ----

TEST_CASE("invariant 5: a gradient of another shape throws Error with both shapes") {
    const Tensor w = parameter({1.0f, 2.0f, 3.0f});
    const Tensor y = custom(
        "wrong", [](const Array<float>& a) { return a.clone(); },
        [](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&, const Array<float>&) {
            to.add(0, dy.reshaped({3, 1}));
        },
        w);
    CHECK_THROWS_WITH(
        sum(y).backward(),
        "[gradient] a gradient must have the shape and device of its value; the value has shape (3), "
        "the gradient has shape (3, 1)");
    CHECK_FALSE(w.has_grad());
    CHECK_THROWS_WITH((w * 2).backward(Array<float>({2}, {1, 1})),
                      "[backward] the seed has shape (2), the result has shape (3)");
}

TEST_CASE("invariant 5: gradients have the shape of their values for every broadcast") {
    Random random(5);
    for (int i = 0; i < 30; ++i) {
        const Shape out = random.shape(3);
        const Tensor a = parameter(random.array<float>(random.within(out))),
                     b = parameter(random.array<float>(out));
        INFO(to_string(a.shape()) << " with " << to_string(b.shape()));
        sum(a * b + a).backward();
        CHECK(a.grad().shape() == a.shape());
        CHECK(b.grad().shape() == b.shape());
    }
}

// ---- 7: a consumed graph throws ----

TEST_CASE("invariant 7: a second backward pass throws Error with the operation") {
    const Tensor w = parameter(a_matrix());
    const Tensor hidden = matmul(w, w);
    const Tensor loss = mean(hidden);
    loss.backward();
    CHECK(message_of([&] { loss.backward(); }) ==
          "[backward] a backward pass has already used 'mean' and freed its saved values; run the forward "
          "pass again");
    CHECK(message_of([&] { sum(hidden).backward(); }) ==
          "[backward] a backward pass has already used 'matmul' and freed its saved values; run the forward "
          "pass again");
    CHECK(message_of([&] { grad(loss, {w}); }) ==
          "[grad] a backward pass has already used 'mean' and freed its saved values; run the forward pass "
          "again");
    CHECK_FALSE(loss.has_grad());  // the backward pass throws at its beginning
    const Array<float> once = w.grad();
    mean(matmul(w, w)).backward();
    CHECK(same_bits(w.grad(), zip(functor::Add{}, once, once)));
}

TEST_CASE("invariant 7: existing gradients stay when a second backward pass throws") {
    const Scalar x = parameter(2.0);
    const Scalar inner = x * x;
    (inner + 0.0).backward();
    CHECK(x.grad() == 4);
    CHECK_THROWS_AS((inner * 2.0).backward(), Error);
    CHECK(x.grad() == 4);
}

// ---- 8: zero_grad, free_grad ----

TEST_CASE("invariant 8: zero_grad keeps the gradient's buffer over all windows") {
    const Tensor w = parameter(a_matrix());
    const Tensor x(a_matrix());
    sum(matmul(x, w)).backward();
    const float* home = w.grad().data();
    const std::size_t bytes = memory::in_use();
    for (int window = 0; window < 3; ++window) {
        w.zero_grad();
        CHECK_FALSE(w.has_grad());
        CHECK(memory::in_use() == bytes);
        for (int micro = 0; micro < 2; ++micro) sum(tanh(matmul(x, w))).backward();
        CHECK(w.grad().data() == home);
    }
}

TEST_CASE("invariant 8: free_grad frees the memory") {
    const Tensor w = parameter(Array<float>::zeros({100, 10}));
    const std::size_t before = memory::in_use();
    sum(w).backward();
    CHECK(memory::in_use() == before + 4032);  // 4000 bytes are rounded up
    CHECK(in_use(MemoryClass::gradient) >= 4032);
    w.free_grad();
    CHECK(memory::in_use() == before);
    CHECK_FALSE(w.has_grad());
    sum(w).backward();
    CHECK(w.grad().shape() == Shape{100, 10});
}

TEST_CASE("invariant 8: grad() throws when no gradient has arrived, and sgd_step skips that parameter") {
    const Tensor used = parameter({1.0f, 2.0f}), untouched = parameter({3.0f});
    CHECK_THROWS_WITH(used.grad(),
                      "[grad] no gradient has arrived at this 'parameter' of shape (2); call backward() on a "
                      "result that uses it");
    sum(used).backward();
    const float* buffer = untouched.value().data();
    sgd_step({used, untouched}, 0.5);
    CHECK(used.value().to_vector() == std::vector<float>{0.5f, 1.5f});
    CHECK(untouched.value().to_vector() == std::vector<float>{3});
    CHECK(untouched.value().data() == buffer);
    used.zero_grad();
    CHECK_THROWS_AS(used.grad(), Error);
    sgd_step({used}, 0.5);  // ignores the old numbers that the buffer contains
    CHECK(used.value().to_vector() == std::vector<float>{0.5f, 1.5f});
}

TEST_CASE("invariant 8: a copy of a gradient never changes") {
    const Tensor w = parameter({1.0f, 2.0f});
    sum(w * w).backward();
    const Array<float> copy = w.grad();
    const std::vector<float> seen = copy.to_vector();
    SECTION("when more is added") { sum(w * 3).backward(); }
    SECTION("when the next window starts") {
        w.zero_grad();
        sum(w * 3).backward();
        CHECK(w.grad().to_vector() == std::vector<float>{3, 3});
    }
    SECTION("when a moved gradient is set") {
        w.zero_grad();
        sum(reshape(w, {2, 1})).backward();
        CHECK(w.grad().to_vector() == std::vector<float>{1, 1});
    }
    SECTION("when it is freed") { w.free_grad(); }
    CHECK(copy.to_vector() == seen);
}

// ---- 11: recomputation is exact ----

TEST_CASE("invariant 11: a random number depends on seed, stream and index, not on earlier draws") {
    std::vector<float> forwards(1000), piecewise(1000);
    random::detail::fill_uniform<float>(forwards, 42, 7);
    for (std::size_t i = piecewise.size(); i-- > 0;) {
        piecewise[i] = random::detail::uniform<float>(42, 7, i);
        random::detail::uniform<float>(i, 3, 5);  // draws with other seeds have no influence
    }
    CHECK(forwards == piecewise);
    random::detail::fill_uniform<float>(std::span(piecewise).subspan(333, 100), 42, 7, 0, 1, 333);
    CHECK(forwards == piecewise);
    CHECK(random::detail::uniform<float>(42, 7, 1) != random::detail::uniform<float>(42, 8, 1));
    CHECK(random::detail::uniform<float>(42, 7, 1) != random::detail::uniform<float>(43, 7, 1));
}
