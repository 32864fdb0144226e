// Tests that an observer sees each operation with its saved values, and sees each backward function before
// and after the function runs.
#include "tally/autograd/observer.hpp"

#include <optional>
#include <stdexcept>
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
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

struct EventLog : Observer {
    void on_forward(const ForwardEvent& operation) override {
        lines.push_back(std::string(operation.op) + (operation.node ? "" : " unrecorded"));
        kept.emplace_back(operation.saved.begin(), operation.saved.end());
        results.push_back(operation.value);
        in_use.push_back(memory::in_use());
    }
    void before_backward(const Node& node) override { lines.push_back(std::string("> ") + node.op()); }
    void after_backward(const Node& node) override { lines.push_back(std::string("< ") + node.op()); }

    std::vector<std::string> lines;
    std::vector<std::vector<detail::ValueInfo>> kept;  // one entry for each operation
    std::vector<detail::ValueInfo> results;
    std::vector<std::size_t> in_use;
};

struct ThrowingObserver : Observer {
    void on_forward(const ForwardEvent&) override {
        if (--events_left == 0) throw std::runtime_error("enough");
    }
    int events_left = 1;
};

using Lines = std::vector<std::string>;

Tensor weights(const Shape& shape = {8, 16}) { return parameter(Array<float>::full(shape, 0.5f)); }

}  // namespace

TEST_CASE("Observer: sees each operation and each backward function in order") {
    const Tensor w = weights(), x = constant(Array<float>::full({4, 8}, 1.0f));
    EventLog log;
    {
        const Observer::Scope scope(log);
        sum(tanh(matmul(x, w))).backward();
    }
    sum(w).backward();  // this backward pass is not observed
    CHECK(log.lines ==
          Lines{"matmul", "tanh", "sum", "> sum", "< sum", "> tanh", "< tanh", "> matmul", "< matmul"});
}

TEST_CASE("Observer: sees operations that record nothing") {
    const Tensor w = weights(), x = constant(Array<float>::full({8, 16}, 1.0f));
    EventLog log;
    const Observer::Scope scope(log);
    x + x;
    concat<float>({x, x});
    {
        const NoGrad off;
        tanh(w);
        concat<float>({w, w});
    }
    concat<float>({w, w});
    CHECK(log.lines ==
          Lines{"add unrecorded", "concat unrecorded", "tanh unrecorded", "concat unrecorded", "concat"});
    for (const std::vector<detail::ValueInfo>& kept : log.kept) CHECK(kept.empty());
}

TEST_CASE("Observer: sees the result and the saved values") {
    const Tensor w = weights();
    Tensor x = w + 1;
    const memory::detail::Storage* const of_x = x.value().storage();
    EventLog log;
    {
        const Observer::Scope scope(log);
        Tensor y = tanh(std::move(x) * w);
        REQUIRE(log.results.size() == 2);
        CHECK(log.results[1].shape == Shape{8, 16});
        CHECK(log.results[1].bytes == 512);
        CHECK(log.results[1].storage == y.value().storage());
        REQUIRE(log.kept[0].size() == 2);
        CHECK(log.kept[0][0].storage == of_x);
        CHECK(log.kept[0][1].storage == w.value().storage());
        CHECK(memory::detail::memory_class(log.kept[0][1].storage) == MemoryClass::parameter);
        REQUIRE(log.kept[1].size() == 1);
        CHECK(log.kept[1][0].storage == log.results[1].storage);
        y.backward(y.value());
    }
}

TEST_CASE("Observer: operands still have their memory when the event arrives") {
    const Tensor w = weights(), x = constant(Array<float>::full({8, 16}, 1.0f));
    const std::size_t before = memory::in_use();
    EventLog log;
    const Observer::Scope scope(log);
    const Tensor y = matmul(w + 1, x, {.transpose_a = true});
    CHECK(log.in_use == std::vector<std::size_t>{before + 512, before + 512 + y.value().storage()->bytes});
    {
        const NoGrad off;
        const Tensor z = matmul(w + 1, x, {.transpose_a = true});
        CHECK(log.in_use[3] - log.in_use[2] == y.value().storage()->bytes);
    }
}

TEST_CASE("Observer: sees scalars without storage, and only saved values") {
    const Scalar a = parameter(3.0), b = constant(4.0);
    EventLog log;
    const Observer::Scope scope(log);
    a* b;
    a + b;
    REQUIRE(log.kept.size() == 2);
    REQUIRE(!log.kept[0].empty());
    CHECK(log.kept[0][0].storage == nullptr);
    CHECK(log.kept[0][0].bytes == sizeof(double));
    CHECK(log.kept[1].empty());
}

TEST_CASE("Observer: sees the name of a custom operation") {
    const Tensor w = weights();
    EventLog log;
    const Observer::Scope scope(log);
    const auto copy = [](const Array<float>& x) { return x.clone(); };
    const auto back = [](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&,
                         const Array<float>&) { to.add(0, dy); };
    const std::string name = "a name too long to be kept inside of a string";
    custom(name, copy, back, w);
    custom(name, copy, back, constant(w.value()));
    CHECK(log.lines == Lines{name, name + " unrecorded"});
}

TEST_CASE("Observer: several observers are called in the order of their registration") {
    const Tensor w = weights();
    Lines heard;
    struct Echo : Observer {
        Echo(Lines& all, std::string who) : heard(all), name(std::move(who)) {}
        void on_forward(const ForwardEvent&) override { heard.push_back(name + " computed"); }
        void before_backward(const Node&) override { heard.push_back(name + " pulling"); }
        void after_backward(const Node&) override { heard.push_back(name + " pulled"); }
        Lines& heard;
        std::string name;
    };
    Echo first(heard, "first"), second(heard, "second"), third(heard, "third");
    const Observer::Scope outer(first);
    {
        const Observer::Scope middle(second);
        {
            const Observer::Scope inner(third);
            -w;
        }
        sum(w).backward();
    }
    -w;
    CHECK(heard == Lines{"first computed", "second computed", "third computed", "first computed",
                         "second computed", "first pulling", "second pulling", "first pulled",
                         "second pulled", "first computed"});
}

TEST_CASE("Observer: observers can end in any order") {
    const std::vector<int> order =
        GENERATE(std::vector<int>{0, 1, 2}, std::vector<int>{0, 2, 1}, std::vector<int>{1, 0, 2},
                 std::vector<int>{1, 2, 0}, std::vector<int>{2, 0, 1}, std::vector<int>{2, 1, 0});
    const Tensor w = weights();
    EventLog logs[3];
    std::optional<Observer::Scope> scope[3];
    for (std::size_t i = 0; i < 3; ++i) scope[i].emplace(logs[i]);
    for (const int next : order) {
        -w;
        scope[static_cast<std::size_t>(next)].reset();
    }
    -w;
    for (std::size_t i = 0; i < 3; ++i) CHECK(logs[static_cast<std::size_t>(order[i])].lines.size() == i + 1);
    CHECK(instrumentation::detail::observer == nullptr);
}

TEST_CASE("Observer: no node and no memory is left when an observer throws") {
    const Tensor w = weights();
    const std::int64_t nodes = Node::live_count();
    const std::size_t before = memory::in_use();
    for (int events_left = 1; events_left <= 3; ++events_left) {
        ThrowingObserver throwing;
        throwing.events_left = events_left;
        const Observer::Scope scope(throwing);
        CHECK_THROWS_AS(concat<float>({tanh(w * w), w}), std::runtime_error);
        CHECK(Node::live_count() == nodes);
        CHECK(memory::in_use() == before);
        CHECK(in_use(MemoryClass::saved) == 0);
    }
    sum(w * w).backward();
    CHECK(w.grad().span()[0] == 1.0f);
}

TEST_CASE("Observer: no node and no memory is left when a backward pass ends or throws") {
    struct Throwing : Observer {
        void before_backward(const Node&) override { throw_if(before); }
        void after_backward(const Node&) override { throw_if(after); }
        static void throw_if(bool yes) {
            if (yes) throw std::runtime_error("enough");
        }
        bool before = false, after = false;
    };
    const Tensor w = weights();
    const std::int64_t nodes = Node::live_count();
    const std::size_t bytes = memory::in_use();
    const bool before = GENERATE(false, true), after = GENERATE(false, true), rule = GENERATE(false, true),
               held = GENERATE(false, true);
    CAPTURE(before, after, rule, held);
    {
        Throwing throwing;
        throwing.before = before;
        throwing.after = after;
        const Observer::Scope scope(throwing);
        const auto copy = [](const Array<float>& x) { return x.clone(); };
        const auto back = [&](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&,
                              const Array<float>&) {
            Throwing::throw_if(rule);
            to.add(0, dy);
        };
        Tensor y = custom("copy", copy, back, w * w), loss = sum(y);
        if (!held) y = {};
        if (before || after || rule)
            CHECK_THROWS_AS(loss.backward(), std::runtime_error);
        else
            loss.backward();
    }
    CHECK(Node::live_count() == nodes);
    w.free_grad();
    CHECK(memory::in_use() == bytes);
}
