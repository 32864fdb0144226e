// Tests that an open window locks its parameters and gradients. A write that bypasses the lock throws an
// Error, or the next call of add() or finish() detects the write.
#include "tally/train/parameter_lock.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../lessons/accumulate.hpp"
#include "../lessons/adam_a.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/window.hpp"
#include "train/overwrite.hpp"

namespace tally::test {

namespace {

using lesson::Accumulate, lesson::AdamA;
using A = Array<double>;

// This model has a weight of 1. The gradient is the mean of the items, which is 3 for (1, 2) and (3, 6).
struct One {
    Tensor64 w = parameter(A({1, 1}, {1.0}));
    Sgd<double> sgd{{w}, {.learning_rate = 1}};
    Loss<A> loss(std::vector<double> x) const {
        return Loss(matmul(constant(A({static_cast<std::int64_t>(x.size()), 1}, x)), w));
    }
};

}  // namespace

TEST_CASE("Window: modifications of a window's parameters throw an Error and have no effect") {
    struct Attempt {
        const char* says;
        std::function<void(One&)> tries;
    };
    const std::vector<Attempt> attempts{
        {"[zero_grad] a window is open", [](One& o) { o.sgd.zero_grad(); }},
        {"[step] a window is open", [](One& o) { o.sgd.step(); }},
        {"[zero_grad] this parameter of shape (1, 1)", [](One& o) { o.w.zero_grad(); }},
        {"[free_grad]", [](One& o) { o.w.free_grad(); }},
        {"[update]", [](One& o) { sgd_step({o.w}, 1); }},
        {"[modify_value]", [](One& o) { o.w.modify_value([](A& v) { *v.writable() = 9; }); }},
        {"[modify_value]", [](One& o) { MovingAverage<double>({o.w}).swap(); }},
        {"[modify_grad]", [](One& o) { o.w.modify_grad([](A& g) { *g.writable() = 9; }); }},
        {"[modify_grad]", [](One& o) { clip_grad_norm<double>({o.w}, 0.1); }},
        {"[modify_grad]", [](One& o) { clip_grad_value<double>({o.w}, 0.1); }},
        {"[assign]",
         [](One& o) {
             o.w.assign(A({1, 1}, {5.0}));
         }},
        {"[backward]",
         [](One& o) {
             o.loss({3, 6}).sum.backward();
         }},
        {"[backward]", [](One& o) { o.w.backward(); }},
        {"[fold] a window is open", [](One& o) { AdamA<double>({o.w}).fold(); }},
        {"[window] parameter 0 of (1, 1) belongs to another", [](One& o) { Window<double>{o.sgd}; }},
    };
    for (const Attempt& attempt : attempts) {
        INFO(attempt.says);
        One one;
        Window<double> window(one.sgd, {.micro_batches = 2});
        window.add(one.loss({1, 2}));
        CHECK_THAT(message_of([&] { attempt.tries(one); }), contains(attempt.says));
        window.add(one.loss({3, 6}));
        CHECK_THAT(message_of([&] { attempt.tries(one); }), contains(attempt.says));
        CHECK(window.finish().stepped);
        CHECK(one.w.item() == 1 - 3);
        CHECK(message_of([&] { attempt.tries(one); }) == "no error");  // after finish() the call is valid
    }
}

TEST_CASE("Window: writes that bypass the lock are found by add() and finish()") {
    for (const bool of_value : {false, true}) {
        One one;
        Window<double> window(one.sgd);
        window.add(one.loss({1, 2}));
        overwrite(of_value ? one.w.value() : one.w.grad(), A({1, 1}, {7.0}));
        const std::string says = "of parameter 0 of (1, 1) was changed in place since the last micro-batch";
        CHECK_THAT(message_of([&] { window.add(one.loss({3, 6})); }), contains(says));
        CHECK_THAT(message_of([&] { window.finish(); }), contains(of_value ? "the value" : "the gradient"));
        CHECK_THAT(message_of([&] { window.add_in_passes([] {}); }), contains(says));
        window.discard();
        one.w.assign(A({1, 1}, {1.0}));
        window.add(one.loss({1, 2, 3, 6}));
        window.finish();
        CHECK(one.w.item() == 1 - 3);
    }
}

TEST_CASE("Window: two windows on the same parameters may be used alternately") {
    One one;
    Sgd<double> other({one.w}, {.learning_rate = 1});
    Window<double> a(one.sgd, {.micro_batches = 2}), b(one.sgd), c(other);
    { const Window<double> gone(one.sgd); }  // the destructor of an unused window unlocks nothing
    a.add(one.loss({1, 2}));
    for (Window<double>* const idle : {&b, &c}) {
        CHECK_THROWS_WITH(idle->add(one.loss({3, 6})), contains("belongs to another window"));
        CHECK_NOTHROW(idle->discard());  // an idle window is empty, so discard() has no effect
    }
    for (Sgd<double>* const sgd : {&one.sgd, &other}) {
        CHECK_THROWS_WITH(sgd->step(), contains("[step] a window is open"));
        CHECK_THROWS_WITH(sgd->zero_grad(), contains("[zero_grad] a window is open"));
    }
    a.add(one.loss({3, 6}));
    a.finish();
    CHECK(one.w.item() == 1 - 3);
    b.add(one.loss({2}));
    b.finish();
    CHECK(one.w.item() == 1 - 3 - 2);
}

TEST_CASE("Accumulate: only the backward pass runs outside the window") {
    One one;
    Accumulate<double> wrapped(one.sgd, 2, Reduction::sum);
    CHECK_THROWS_WITH(wrapped.step(1), contains("no gradient has arrived"));
    one.loss({1}).sum.backward();
    CHECK_FALSE(wrapped.step(1));
    CHECK_THROWS_WITH(wrapped.step(1), contains("no gradient has arrived since the last micro-batch"));
    CHECK_THROWS_WITH(one.sgd.zero_grad(), contains("a window is open"));
    CHECK_THROWS_WITH(one.w.zero_grad(), contains("belong to an open window"));
    CHECK_THROWS_WITH(wrapped.window().add(one.loss({2})), contains("used after_backward()"));
    one.loss({2}).sum.backward();
    CHECK(wrapped.step(1));
    CHECK(one.w.item() == 1 - 3);

    Window<double> window(one.sgd);
    window.add(one.loss({1}));
    CHECK_THROWS_WITH(window.after_backward(1), contains("used add()"));
}

TEST_CASE("~Window: a window with gradients frees them, and the optimizer's next call throws an Error") {
    One one;
    {
        Window<double> window(one.sgd, {.micro_batches = 2});
        window.add(one.loss({1, 2}));
    }
    CHECK_FALSE(one.w.has_grad());
    const auto says = contains("the last window of this SGD ended with 1 micro-batches in it");
    CHECK_THROWS_WITH(one.sgd.step(), says);
    CHECK_NOTHROW(one.sgd.step());  // the Error is thrown only once
    CHECK(one.w.item() == 1);
    { Window<double>(one.sgd).add(one.loss({1})); }
    CHECK_THROWS_WITH(Window<double>(one.sgd), says);

    // step() throws no Error if another exception destroyed the window, or if the window was saved.
    CHECK_THROWS_AS(([&] {
                        Window<double> window(one.sgd);
                        window.add(one.loss({1}));
                        throw std::runtime_error("stop");
                    }()),
                    std::runtime_error);
    CHECK_NOTHROW(one.sgd.step());
    {
        Window<double> window(one.sgd);
        window.add(one.loss({1}));
        TrainingState state;
        window.save(state, "window");
    }
    CHECK_NOTHROW(one.sgd.step());
    CHECK(one.w.item() == 1);
}

TEST_CASE("Window: a backward pass of another window into a locked parameter throws an Error that names it") {
    const Tensor64 generator = parameter<double>({1}), critic = parameter<double>({2}),
                   target = constant<A>({0});
    Sgd<double> of_generator({generator}, {.learning_rate = 1}), of_critic({critic}, {.learning_rate = 1});
    const bool detached = GENERATE(true, false);
    Window<double> window(of_critic, {.micro_batches = 1}), other(of_generator, {.micro_batches = 1});
    window.add(mse(critic, target));
    other.add(mse(generator * (detached ? critic.detach() : critic), target));
    other.finish();
    if (detached) {
        window.finish();
        CHECK(critic.value().item() == -2);
    } else {
        CHECK_THROWS_WITH(window.finish(), contains("another window ran backward() into parameter 0 of (1)"));
        window.discard();
    }
}

TEST_CASE("Window: a loss that reaches no parameter of the window throws an Error") {
    const Tensor64 w = parameter<double>({1}), elsewhere = parameter<double>({2}), target = constant<A>({0});
    Sgd<double> sgd({w}, {.learning_rate = 1});
    Window<double> window(sgd);
    CHECK_THROWS_WITH(window.add(mse(w.detach(), target)), contains("depends on no parameter"));
    window.add(mse(elsewhere, target));
    CHECK_THROWS_WITH(window.finish(), contains("no gradient has reached any of the window's 1 parameters"));
    window.discard();
    window.add_regularizer(sum(w));
    CHECK_THROWS_WITH(window.flush(), "[window] flush: no micro-batch was added");
    window.discard();
    window.add(mse(w, target));
    window.finish();
    CHECK(w.value().item() == -1);
}

TEST_CASE("Optimizer::load: a learning rate set before load() throws an Error, and a later one is used") {
    const Tensor64 w = parameter<double>({1});
    Sgd<double> before({w}, {.learning_rate = 0.5});
    TrainingState state;
    before.save(state, "sgd");
    Sgd<double> after({w}, {.learning_rate = 0.5});
    after.set_learning_rate(0.25);
    CHECK_THROWS_WITH(after.load(state, "sgd"), contains("set_learning_rate(0.25) was called before load()"));
    CHECK(after.learning_rate() == 0.25);
    after.set_learning_rate(0.5);
    after.load(state, "sgd");
    after.set_learning_rate(0.25);
    CHECK(after.learning_rate() == 0.25);
}

TEST_CASE("Window: a parameter can be the loss of a micro-batch, also in later updates") {
    const Tensor64 w = parameter(A({1}, {2.0}));
    Sgd<double> sgd({w}, {.learning_rate = 0.5});
    Window<double> window(sgd, {.max_norm = 100});
    for (int update = 1; update <= 3; ++update) {
        sum(w * w).backward();
        window.after_backward(1);
        w.backward();  // adds to the gradient of w
        window.after_backward(1);
        window.finish();
    }
    // The mean gradient is w + 1/2, so each update maps w to w/2 - 1/4.
    CHECK(w.value().item() == -0.1875);
}

TEST_CASE("Window: after a failed allocation for backward() of a parameter, no micro-batch is counted") {
    const Tensor64 w = parameter(A({1}, {2.0}));
    Sgd<double> sgd({w}, {.learning_rate = 0.1});
    Window<double> window(sgd, {});
    memory::detail::fail_allocation(1);
    CHECK_THROWS(w.backward());
    memory::detail::fail_allocation(0);
    CHECK(!w.has_grad());
    CHECK_THAT(message_of([&] { window.after_backward(1); }), contains("no gradient has arrived"));
}

}  // namespace tally::test
