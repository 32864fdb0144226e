// Tests that a forward pass has no effect until its loss is added to a window.
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "../lessons/accumulate.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/train/clip.hpp"
#include "tally/train/image_layers.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/trainer.hpp"

namespace tally::test {

namespace {

using lesson::Accumulate;

using S = float;

Array<S> data(std::uint64_t stream, S scale = 1) {
    return randn<S>({4, 3}, 0, scale, {.seed = 5, .stream = stream}).value();
}

// In this network, batch norm collects statistics, and dropout depends on the indices of the items.
struct PendingNet {
    Sequential<S> model{Linear<S>(3, 4, {1, 1}), BatchNorm<S>(4), Dropout<S>(0.5, 7),
                        Linear<S>(4, 1, {1, 2})};
    Sgd<S> sgd{model.parameters(), {.learning_rate = 0.1}};
    Loss<Array<S>> loss(const Array<S>& x, ForwardPass& pass) { return Loss(model(constant(x), pass)); }
    std::vector<S> all() {
        std::vector<S> numbers;
        for (const detail::Member<S>& member : detail::members(model))
            if (!member.counter)
                for (const S number : (member.buffer ? *member.buffer : member.parameter.value()).to_vector())
                    numbers.push_back(number);
        return numbers;
    }
};

// Makes two updates, each with two micro-batches. Calls the function `before` before each micro-batch.
std::vector<S> after(const std::function<void(PendingNet&, Window<S>&)>& before) {
    PendingNet net;
    Window<S> window(net.sgd, {.micro_batches = 2, .seed = 3});
    for (int update = 0; update < 2; ++update) {
        for (const std::uint64_t stream : {1u, 2u}) {
            before(net, window);
            window.add(net.loss(data(stream), window.begin_micro_batch(4)));
        }
        window.finish();
    }
    return net.all();
}

struct Stop : std::runtime_error {
    Stop() : std::runtime_error("stop") {}
};

}  // namespace

TEST_CASE("begin_micro_batch: a pass whose loss is not added has no effect") {
    const auto plain = after([](PendingNet&, Window<S>&) {});
    CHECK(after([](PendingNet&, Window<S>& window) { window.begin_micro_batch(9); }) == plain);
    CHECK(after([](PendingNet& net, Window<S>& window) {  // this loss is not added
              net.loss(data(9, 10), window.begin_micro_batch(4));
          }) == plain);
    CHECK(after([](PendingNet& net, Window<S>& window) {  // this loss is not finite, so it is not added
              Array<S> x = data(9);
              *x.writable() = NAN;
              REQUIRE_FALSE(std::isfinite(net.loss(x, window.begin_micro_batch(4)).mean().item()));
          }) == plain);
    CHECK(after([](PendingNet& net, Window<S>& window) {
              const auto thrown = [&] {
                  const auto loss = net.loss(data(9), window.begin_micro_batch(4));
                  throw Stop();
              };
              CHECK_THROWS_AS(thrown(), Stop);
          }) == plain);
    CHECK(after([](PendingNet& net,
                   Window<S>& window) {  // allocations of the forward pass fail at several places
              for (std::uint64_t n = 1; n < 12; n += 3) {
                  memory::detail::fail_allocation(n);
                  CHECK_THROWS_AS(net.loss(data(9), window.begin_micro_batch(4)), OutOfMemory);
                  memory::detail::fail_allocation(0);
              }
          }) == plain);
    CHECK(after([](PendingNet& net, Window<S>& window) {  // the window rejects the loss
              const auto loss = net.loss(data(9), window.begin_micro_batch(4));
              CHECK_THROWS_WITH(window.add(loss, {.weight = -1}), contains("cannot have the weight -1"));
          }) == plain);
}

TEST_CASE("Window::save: a window can be saved while a pass is pending") {
    const auto saved = [](bool pending) {
        PendingNet net;
        Window<S> window(net.sgd);
        window.add(net.loss(data(1), window.begin_micro_batch(4)));
        if (pending) net.loss(data(9), window.begin_micro_batch(4));
        TrainingState state;
        window.save(state, "window", &net.model);
        PendingNet other;
        Window<S> resumed(other.sgd);
        resumed.load(state, "window", &other.model);
        resumed.add(other.loss(data(2), resumed.begin_micro_batch(4)));
        resumed.finish();
        return other.all();
    };
    CHECK(saved(true) == saved(false));
}

TEST_CASE("Window::add: a loss belongs to the pass in which it was recorded") {
    const auto stale_loss =
        contains("recorded before the last begin_micro_batch() began, or in a window that is over");
    PendingNet net;
    Window<S> window(net.sgd);
    const auto a = net.loss(data(1), window.begin_micro_batch(4));
    const auto b = net.loss(data(2), window.begin_micro_batch(4));
    CHECK_THROWS_WITH(window.add(a), stale_loss);
    CHECK_NOTHROW(window.add(b));
    const auto c = net.loss(data(3), window.begin_micro_batch(4));
    window.finish();  // finish() also ends the ForwardPass
    CHECK_THROWS_WITH(window.add(c), stale_loss);

    // A second forward pass with one ForwardPass would have equal dropout masks, so its loss is rejected.
    ForwardPass& pass = window.begin_micro_batch(4);
    window.add(net.loss(data(1), pass));
    CHECK_THROWS_WITH(window.add(net.loss(data(2), pass)), contains("begin_micro_batch() was not called"));
    CHECK_THROWS_WITH(window.begin_part(4),
                      contains("no micro-batch has begun; call begin_micro_batch() first"));
    CHECK_THROWS_WITH(window.begin_micro_batch(-1), contains("the item count cannot be -1"));
    window.discard();
}

TEST_CASE("begin_micro_batch: items are numbered by the micro-batches that were added") {
    PendingNet net;
    Window<S> window(net.sgd);
    CHECK(window.begin_micro_batch(4).first_item == 0);
    CHECK(window.begin_micro_batch(3).first_item == 0);
    CHECK(window.begin_part(2).first_item == 3);
    window.add(net.loss(data(1), window.begin_part(4)));
    CHECK(window.begin_micro_batch(1).first_item == 9);
    window.discard();
    CHECK(window.begin_micro_batch(1).first_item == 0);
}

namespace {

// Trains for 2 epochs. The loss function throws in call `at`, and `then` says how the training continues.
enum class Then { never, train_again, save_and_resume };

std::vector<S> trained(int at, Then then, bool auto_size) {
    const Folder folder;
    const std::string file = folder / "run.state";
    const Array<S> x = randn<S>({50, 3}, {.seed = 1, .stream = 1}).value();
    int calls = 0;
    std::vector<S> found;
    const auto with_trainer = [&](bool throws, auto go) {
        PendingNet net;
        Trainer<S> trainer(net.model, net.sgd, 50,
                           [&](const Items& items, ForwardPass& pass) {
                               auto loss = net.loss(rows(x, items), pass);
                               if (throws && calls++ == at) throw Stop();
                               return loss;
                           },
                           {.per_device_batch_size = 5,
                            .auto_find_batch_size = auto_size,
                            .gradient_accumulation_steps = 3,
                            .num_train_epochs = 2,
                            .checkpoint = then == Then::save_and_resume ? file : ""});
        go(trainer);
        found = net.all();
    };
    bool resume = false;
    with_trainer(then != Then::never, [&](Trainer<S>& trainer) {
        try {
            trainer.train();
        } catch (const Stop&) {
            if (then == Then::train_again) {
                trainer.train();
            } else {
                trainer.save(file);
                resume = true;
            }
        }
    });
    if (resume) with_trainer(false, [](Trainer<S>& trainer) { trainer.train(); });
    return found;
}

}  // namespace

TEST_CASE("Trainer: after a loss that threw, the training continues with the same bits") {
    for (const bool auto_size : {false, true}) {
        const auto reference = trained(0, Then::never, auto_size);
        for (int at = 0; at < 20; ++at)
            for (const Then then : {Then::train_again, Then::save_and_resume}) {
                INFO("thrown at call " << at << (auto_size ? ", auto_find_batch_size" : ""));
                CHECK(trained(at, then, auto_size) == reference);
            }
    }
}

TEST_CASE("Window: a full window rejects more micro-batches, and an incomplete total rejects finish()") {
    const Tensor64 w = parameter({1.0});
    Sgd<double> sgd({w}, {.learning_rate = 1});
    const auto loss = [&](std::vector<double> x) {
        return Loss(w * constant(Array<double>({static_cast<std::int64_t>(x.size())}, x)));
    };
    Window<double> window(sgd, {.micro_batches = 2, .total = 4});
    window.add(loss({1, 2}));
    CHECK_THROWS_WITH(window.finish(),
                      "[window] finish: the option total is 4, but the sum of the counts is 2 after 1 "
                      "micro-batches; add() the missing micro-batches, or call flush()");
    window.add(loss({3, 6}));  // after the error the window is unchanged
    CHECK_THROWS_WITH(window.add(loss({5})),
                      "[window] add: the window already has all 2 micro-batches; call finish() first");
    CHECK_THROWS_WITH(window.after_backward(1), contains("micro-batches used add()"));
    CHECK(window.finish().stepped);
    CHECK(w.item() == 1 - 3);
    window.add(loss({5, 7}));
    CHECK(window.flush().stepped);  // the window is incomplete
    CHECK(w.item() == 1 - 3 - 6);
}

TEST_CASE("NonFinite: a NaN loss with finite gradients is found") {
    const Tensor64 w = parameter({1.0});
    Sgd<double> sgd({w}, {.learning_rate = 1});
    const auto loss = [&](double shift) { return Loss(w * 2 + constant(Array<double>({1}, {shift}))); };
    const auto with = [&](NonFinite policy, auto then) {
        Window<double> window(sgd, {.non_finite = policy});
        window.add(loss(0));
        window.add(loss(NAN));
        then(window);
    };
    with(NonFinite::raise, [&](Window<double>& window) {
        CHECK_THROWS_WITH(window.finish(), contains("the loss is nan, though its gradients are finite"));
        window.discard();
    });
    with(NonFinite::drop_window, [&](Window<double>& window) { CHECK_FALSE(window.finish().stepped); });
    CHECK(w.item() == 1);
    with(NonFinite::drop_micro, [&](Window<double>& window) { CHECK(window.finish().dropped == 1); });
    CHECK(w.item() == 1 - 2);
}

TEST_CASE("Window::add: an invalid count throws an Error") {
    const Tensor64 w = parameter({1.0});
    Sgd<double> sgd({w}, {.learning_rate = 1});
    Window<double> window(sgd, {.max_norm = 1.0});
    for (const double count : {double(INFINITY), double(NAN), -1.0}) {
        const Loss<Array<double>> loss{sum(w), Array<double>({}, {count})};
        CHECK_THROWS_WITH(
            window.add(loss),
            contains("is not a count that can divide a loss; pass a finite number of at least 0"));
    }
    window.add(Loss(w * 1e200));
    CHECK_THROWS_WITH(window.finish(),
                      contains("the norm of the gradients is inf, though each element is finite"));
}

TEST_CASE("Accumulate: a mean of micro-batches of unequal sizes throws an Error") {
    const Tensor64 w = parameter({1.0});
    Sgd<double> sgd({w}, {.learning_rate = 1});
    const auto run_micro_batch = [&](Accumulate<double>& wrapped, std::int64_t items) {
        (w * 2).backward();
        return wrapped.step(items);
    };
    Accumulate<double> mean(sgd, 2, Reduction::mean);
    run_micro_batch(mean, 4);
    CHECK_THROWS_WITH(run_micro_batch(mean, 2), contains("this micro-batch has 2 items, those before 4"));
    mean.window().discard();
    Accumulate<double> sum(sgd, 2, Reduction::sum);
    run_micro_batch(sum, 4);
    CHECK(run_micro_batch(sum, 2));
    CHECK(w.item() == 1 - 4);
    CHECK_THROWS_WITH(run_micro_batch(sum, 0), contains("of 0 items"));
    CHECK_THROWS_WITH(sum.flush(), contains("discard()"));  // a gradient has been written
    sum.window().discard();
    run_micro_batch(sum, 4);
    (w * 2).backward();
    CHECK_THROWS_WITH(sum.flush(), contains("since the last micro-batch without after_backward()"));
    sum.step(4);
    CHECK(w.item() == 1 - 4 - 4);
}

}  // namespace tally::test
