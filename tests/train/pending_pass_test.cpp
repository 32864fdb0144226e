// A pass has no effect until its loss is added: what was looked at and left out, or threw, leaves nothing.
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
    return random_normal<S>({4, 3}, {.seed = 5, .stream = stream}, 0, scale);
}

// Batch norm leaves statistics, dropout asks for the number of the item.
struct Net {
    Sequential<S> model{Linear<S>(3, 4, {1, 1}), BatchNorm<S>(4), Dropout<S>(0.5, 7),
                        Linear<S>(4, 1, {1, 2})};
    Sgd<S> sgd{parameters(model), {.learning_rate = 0.1}};
    Loss<Array<S>> loss(const Array<S>& x, ForwardPass& pass) { return make_loss(model(constant(x), pass)); }
    std::vector<S> all() {
        std::vector<S> numbers;
        for (const detail::Member<S>& member : members(model))
            if (!member.counter)
                for (const S number : (member.buffer ? *member.buffer : member.parameter.value()).to_vector())
                    numbers.push_back(number);
        return numbers;
    }
};

// Two micro-batches, with something else before each.
std::vector<S> after(const std::function<void(Net&, Window<S>&)>& before) {
    Net net;
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

TEST_CASE("A pass whose loss is not added leaves nothing") {
    const auto plain = after([](Net&, Window<S>&) {});
    CHECK(after([](Net&, Window<S>& window) { window.begin_micro_batch(9); }) == plain);
    CHECK(after([](Net& net, Window<S>& window) {  // a probing forward
              net.loss(data(9, 10), window.begin_micro_batch(4));
          }) == plain);
    CHECK(after([](Net& net, Window<S>& window) {  // looked at and left out
              Array<S> x = data(9);
              *x.writable() = NAN;
              REQUIRE_FALSE(std::isfinite(net.loss(x, window.begin_micro_batch(4)).mean().item()));
          }) == plain);
    CHECK(after([](Net& net, Window<S>& window) {
              const auto thrown = [&] {
                  const auto loss = net.loss(data(9), window.begin_micro_batch(4));
                  throw Stop();
              };
              CHECK_THROWS_AS(thrown(), Stop);
          }) == plain);
    CHECK(
        after([](Net& net, Window<S>& window) {  // the forward runs out of memory, at one place after another
            for (std::uint64_t n = 1; n < 12; n += 3) {
                memory::fail_allocation(n);
                CHECK_THROWS_AS(net.loss(data(9), window.begin_micro_batch(4)), OutOfMemory);
                memory::fail_allocation(0);
            }
        }) == plain);
    CHECK(after([](Net& net, Window<S>& window) {  // refused before anything of it was counted
              const auto loss = net.loss(data(9), window.begin_micro_batch(4));
              CHECK_THROWS_WITH(window.add(loss, {.weight = -1}), contains("cannot weigh -1"));
          }) == plain);
}

TEST_CASE("A window can be saved while a pass is pending") {
    const auto saved = [](bool pending) {
        Net net;
        Window<S> window(net.sgd);
        window.add(net.loss(data(1), window.begin_micro_batch(4)));
        if (pending) net.loss(data(9), window.begin_micro_batch(4));
        TrainingState state;
        window.save(state, "window", &net.model);
        Net twin;
        Window<S> resumed(twin.sgd);
        resumed.load(state, "window", &twin.model);
        resumed.add(twin.loss(data(2), resumed.begin_micro_batch(4)));
        resumed.finish();
        return twin.all();
    };
    CHECK(saved(true) == saved(false));
}

TEST_CASE("A loss is booked on the pass that it went forward in or not at all") {
    const auto refused =
        contains("recorded before the last begin_micro_batch() began, or in a window that is over");
    Net net;
    Window<S> window(net.sgd);
    const auto a = net.loss(data(1), window.begin_micro_batch(4));
    const auto b = net.loss(data(2), window.begin_micro_batch(4));
    CHECK_THROWS_WITH(window.add(a), refused);
    CHECK_NOTHROW(window.add(b));
    const auto c = net.loss(data(3), window.begin_micro_batch(4));
    window.finish();  // ends the pass, too
    CHECK_THROWS_WITH(window.add(c), refused);

    // One pass for two forwards: the second would have the first one's masks.
    ForwardPass& pass = window.begin_micro_batch(4);
    window.add(net.loss(data(1), pass));
    CHECK_THROWS_WITH(window.add(net.loss(data(2), pass)), contains("has no begin_micro_batch() of its own"));
    CHECK_THROWS_WITH(window.begin_part(4),
                      contains("no micro-batch has begun; call begin_micro_batch() first"));
    CHECK_THROWS_WITH(window.begin_micro_batch(-1), contains("there are no -1 items"));
    window.discard();
}

TEST_CASE("Items are numbered by what was added") {
    Net net;
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

// Trains 2 epochs; the loss throws at one of its calls, and then training goes on as it may.
enum class Then { never, train_again, save_and_resume };

std::vector<S> trained(int at, Then then, bool auto_size) {
    const Folder folder;
    const std::string file = folder / "run.state";
    const Array<S> x = random_normal<S>({50, 3}, {.seed = 1, .stream = 1});
    int calls = 0;
    std::vector<S> found;
    const auto with_trainer = [&](bool throws, auto go) {
        Net net;
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

TEST_CASE("After a loss that threw training goes on with the same bits") {
    for (const bool auto_size : {false, true}) {
        const auto reference = trained(0, Then::never, auto_size);
        for (int at = 0; at < 20; ++at)
            for (const Then then : {Then::train_again, Then::save_and_resume}) {
                INFO("thrown at call " << at << (auto_size ? ", auto_find_batch_size" : ""));
                CHECK(trained(at, then, auto_size) == reference);
            }
    }
}

TEST_CASE("A full window takes no more and a total that has not come is no window") {
    const Tensor64 w = parameter({1.0});
    Sgd<double> sgd({w}, {.learning_rate = 1});
    const auto loss = [&](std::vector<double> x) {
        return make_loss(w * constant(Array<double>({static_cast<std::int64_t>(x.size())}, x)));
    };
    Window<double> window(sgd, {.micro_batches = 2, .total = 4});
    window.add(loss({1, 2}));
    CHECK_THROWS_WITH(window.finish(),
                      "[window] finish: a total of 4 was announced, but 2 came in 1 micro-batches; add() the "
                      "rest, or flush() it as a tail");
    window.add(loss({3, 6}));  // the error has left the window as it was
    CHECK_THROWS_WITH(window.add(loss({5})),
                      "[window] add: it is full with its 2 micro-batches; finish() it first");
    CHECK_THROWS_WITH(window.after_backward(1), contains("came by add()"));
    CHECK(window.finish().stepped);
    CHECK(w.item() == 1 - 3);
    window.add(loss({5, 7}));
    CHECK(window.flush().stepped);  // a tail
    CHECK(w.item() == 1 - 3 - 6);
}

TEST_CASE("A loss that is no number is seen though its gradients are finite") {
    const Tensor64 w = parameter({1.0});
    Sgd<double> sgd({w}, {.learning_rate = 1});
    const auto loss = [&](double beside) {
        return make_loss(w * 2 + constant(Array<double>({1}, {beside})));
    };
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

TEST_CASE("A count that nothing can be divided by is refused in the right words") {
    const Tensor64 w = parameter({1.0});
    Sgd<double> sgd({w}, {.learning_rate = 1});
    Window<double> window(sgd, {.max_norm = 1.0});
    for (const double count : {double(INFINITY), double(NAN), -1.0}) {
        const Loss<Array<double>> loss{sum(w), Array<double>({}, {count})};
        CHECK_THROWS_WITH(window.add(loss),
                          contains("is not a count that can divide a loss; pass a finite number from 0 on"));
    }
    window.add(make_loss(w * 1e200));
    CHECK_THROWS_WITH(window.finish(),
                      contains("the norm of the gradients is inf, though each element is finite"));
    window.discard();
    (w * 1e200).backward();
    CHECK_THROWS_WITH(clip_grad_norm<double>({w}, 1, NonFiniteNorm::raise),
                      contains("the norm is inf, though each element is finite"));
}

TEST_CASE("A wrapped optimizer takes no mean of unequal means") {
    const Tensor64 w = parameter({1.0});
    Sgd<double> sgd({w}, {.learning_rate = 1});
    const auto swept = [&](Accumulate<double>& wrapped, std::int64_t items) {
        (w * 2).backward();
        return wrapped.step(items);
    };
    Accumulate<double> mean(sgd, 2, Reduction::mean);
    swept(mean, 4);
    CHECK_THROWS_WITH(swept(mean, 2), contains("this micro-batch has 2 items, those before 4"));
    mean.window().discard();
    Accumulate<double> sum(sgd, 2, Reduction::sum);
    swept(sum, 4);
    CHECK(swept(sum, 2));
    CHECK(w.item() == 1 - 4);
    CHECK_THROWS_WITH(swept(sum, 0), contains("of 0 items"));
    CHECK_THROWS_WITH(sum.flush(), contains("discard()"));  // its gradient is there
    sum.window().discard();
    swept(sum, 4);
    (w * 2).backward();
    CHECK_THROWS_WITH(sum.flush(), contains("since the last micro-batch without after_backward()"));
    sum.step(4);
    CHECK(w.item() == 1 - 4 - 4);
}

}  // namespace tally::test
