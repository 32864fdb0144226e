// Tests that an Error is thrown if weights, regularizers, Trainer options or calls of share() differ between
// processes. Also tests a Window that contains only the weights of one stage.
#include <optional>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

bool last() { return me() + 1 == ranks(); }
std::string last_rank() { return "rank " + std::to_string(ranks() - 1); }

struct One {
    Tensor w = parameter(Array<float>::full({3}, 1));
    Sgd<float> sgd{{w}, {.learning_rate = 0.1}};
    DataParallel<float> across{world()};
    Window<float> window{sgd, {}, &across};

    void add() { window.add({sum(w), constant(Array<float>::full({}, 1))}); }
    std::string error() {
        return message_of([&] { window.finish(); });
    }
};

// A Pipe with one weight per process, and a Window that contains only the weight of this process.
struct Alone {
    Tensor w = parameter(Array<float>::full({2, 2}, 1));
    Sgd<float> sgd{{w}, {.learning_rate = 0.1}};
    Window<float> window;
    Pipe<float> pipe{world(), {[this](const Tensor& x, int) { return matmul(x, w); }}};

    explicit Alone(Window<float>::Options options) : window(sgd, options) {}
    std::string error() {
        pipe.run(
            2,
            [](int) {
                return Array<float>::full({1, 2}, 1);
            },
            [](const Tensor& y, int) { return sum(y); });
        return message_of([&] { window.after_backward(2); });
    }
};

}  // namespace

TEST_CASE("Pipe: a window with options on the whole gradient throws an Error without PipelineParallel") {
    const auto error = [](Window<float>::Options options) { return Alone(options).error(); };
    const auto rejection = [](const std::string& option) {
        return ranks() == 1 ? ""
                            : "[window] after_backward: " + option + " needs the gradients of all " +
                                  std::to_string(ranks()) + " processes of the pipe";
    };
    CHECK_THAT(error({.max_norm = 0.5}), contains(rejection("max_norm 0.5")));
    CHECK_THAT(error({.max_value = 0.25}), contains(rejection("max_value 0.25")));
    CHECK_THAT(error({.non_finite = NonFinite::drop_window}),
               contains(rejection("a non_finite policy other than raise")));
    Alone plain({});
    CHECK(plain.error() == "no error");
    CHECK(plain.window.finish().stepped);
    Alone clipped({.max_norm = 0.5});
    (void)clipped.error();
    clipped.window.discard();
    sum(clipped.w).backward();  // a backward pass outside the pipe
    clipped.window.after_backward(1);
    CHECK(clipped.window.finish().stepped);
}

TEST_CASE("Dropout: processes whose items are not numbered draw different masks") {
    const Tensor w = parameter(Array<float>::full({8, 64}, 1));
    Sgd<float> sgd({w}, {.learning_rate = 0.1});
    DataParallel<float> across(world());
    Window<float> window(sgd, {.seed = 3}, &across);
    Dropout<float> drop(0.5, 1);
    const Tensor dropped = drop(w, window.begin_micro_batch(8));
    const auto sums = world().all_gather("masks", std::to_string(detail::checksum(dropped.value())));
    for (std::size_t rank = 1; rank < ranks(); ++rank) CHECK(sums[rank] != sums[0]);
    window.add({sum(dropped), constant(Array<float>::full({}, 8))});
    CHECK(window.finish().stepped);
    across.share(split(Items::in_order(16), 2));  // numbers the items, so all processes use the same seed
    const auto seeds = world().all_gather("seeds", std::to_string(window.begin_micro_batch(2).seed));
    for (const std::string& seed : seeds) CHECK(seed == seeds[0]);
}

TEST_CASE("DataParallel::share: different micro-batches throw an Error that lists them by process") {
    if (ranks() == 1) return;
    const Items order = Items::shuffled(40, 1, 0);
    One one;
    const auto error = [&](const std::vector<Items>& parts) {
        one.across.share(parts);
        one.add();
        std::string words = one.error();
        one.window.discard();
        return words;
    };
    const std::string other = error(split(last() ? Items::shuffled(40, 2, 0) : order, 8));
    CHECK_THAT(other, contains("[processes] finish of window 0: " + last_rank() +
                               " passed 5 micro-batches with 40 items in all and checksum "));
    CHECK_THAT(other,
               contains(" to share(), rank 0 passed 5 micro-batches with 40 items in all and checksum "));
    CHECK_THAT(error(split(order, last() ? 4 : 8)),
               contains(last_rank() + " passed 10 micro-batches with 40 items"));
    CHECK_THAT(error(split(last() ? order.part(0, 39) : order, 8)),
               contains(last_rank() + " passed 5 micro-batches with 39 items"));
    CHECK(error(split(order, 8)) == "no error");
    // One process does not call share(), which is not an error.
    if (last())
        one.across.begin_at(40);
    else
        one.across.share(split(order, 4));
    one.add();
    CHECK(one.error() == "no error");
}

TEST_CASE("Trainer: different options or numbers of items on the processes throw an Error") {
    if (ranks() == 1) return;
    const auto made = [](std::int64_t items, Trainer<float>::Options options) {
        Linear<float> model(2, 1, {1, 0});
        Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
        DataParallel<float> across(world(), {.model = &model});
        return message_of([&] {
            Trainer<float> trainer(
                model, sgd, items,
                [](const Items&, ForwardPass&) -> Loss<Array<float>> { throw Error("not reached"); }, options,
                &across);
        });
    };
    const std::string start = "[processes] the construction of a Window: " + last_rank() + " has option ",
                      advice = "; make them equal on all processes";
    CHECK(made(48, {.shuffle = !last()}) == start + "shuffle no, rank 0 has yes" + advice);
    CHECK(made(last() ? 41 : 48, {}) == start + "items 41, rank 0 has 48" + advice);
    CHECK(made(48, {.per_device_batch_size = last() ? 4 : 8}) ==
          start + "per_device_batch_size 4, rank 0 has 8" + advice);
    CHECK(made(48, {}) == "no error");
}

TEST_CASE("DataParallel: weights that one process writes are compared at the next window's end") {
    if (ranks() == 1) return;
    One one;
    one.add();
    CHECK(one.error() == "no error");
    const auto differs = [&](const std::string& number) {
        const std::string words = one.error();
        CHECK_THAT(words, contains("[processes] the weights, written since the last update by " +
                                   last_rank() + ", at the finish of window " + number + ": " + last_rank() +
                                   " has parameter 0 with checksum "));
        one.window.discard();
    };
    if (last()) one.w.assign(Array<float>::full({3}, 5));
    one.add();
    differs("1");
    one.add();
    differs("2");  // the error is repeated until the weights are equal
    one.w.assign(Array<float>::full({3}, 5));
    one.add();
    CHECK(one.error() == "no error");
    if (last()) one.w.assign(one.w.value().clone());  // the bits are the same, so all processes continue
    one.add();
    CHECK(one.error() == "no error");
    // The processes compare their weights also before the first optimizer step.
    One fresh;
    if (last()) fresh.w.assign(Array<float>::full({3}, 7));
    fresh.add();
    CHECK_THAT(fresh.error(), contains("written since the last update by " + last_rank()));
    fresh.window.discard();
}

TEST_CASE("Window::add_regularizer: the sums of the processes' terms are compared") {
    if (ranks() == 1) return;
    One one;
    one.add();
    one.window.add_regularizer(sum(one.w) * (last() ? 2.F : 1.F));
    CHECK_THAT(one.error(), contains("[processes] finish of window 0: " + last_rank() +
                                     " has terms of add_regularizer() with the sum 6, rank 0 has 3"));
    one.window.discard();
    one.add();
    one.window.add_regularizer(sum(one.w));
    CHECK(one.error() == "no error");
}

}  // namespace tally::test
