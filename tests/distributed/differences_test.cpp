// What differs between processes and used to train something else without a word: shares, the Trainer's options, weights
// written by hand, terms, and a pipe's window that knows its own stage only.
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
    std::string said() {
        return message_of([&] { window.finish(); });
    }
};

// A pipe of one weight for each process, and a window that knows this one's only.
struct Alone {
    Tensor w = parameter(Array<float>::full({2, 2}, 1));
    Sgd<float> sgd{{w}, {.learning_rate = 0.1}};
    Window<float> window;
    Pipe<float> pipe{world(), {[this](const Tensor& x, int) { return matmul(x, w); }}};

    explicit Alone(WindowOptions<float> options) : window(sgd, options) {}
    std::string said() {
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

TEST_CASE("A pipe's window that looks at gradients as a whole is refused without PipelineParallel") {
    const auto said = [](WindowOptions<float> options) { return Alone(options).said(); };
    const auto refused = [](const std::string& option) {
        return ranks() == 1 ? ""
                            : "[window] after_backward: a pipe of " + std::to_string(ranks()) +
                                  " processes went backward, and " + option + " would look at";
    };
    CHECK_THAT(said({.max_norm = 0.5}), contains(refused("max_norm 0.5")));
    CHECK_THAT(said({.max_value = 0.25}), contains(refused("max_value 0.25")));
    CHECK_THAT(said({.non_finite = NonFinite::drop_window}),
               contains(refused("a non_finite policy other than raise")));
    Alone plain({});
    CHECK(plain.said() == "no error");
    CHECK(plain.window.finish().stepped);
    Alone clipped({.max_norm = 0.5});
    (void)clipped.said();
    clipped.window.discard();
    sum(clipped.w).backward();  // no pipe's
    clipped.window.after_backward(1);
    CHECK(clipped.window.finish().stepped);
}

TEST_CASE("Processes that number no items draw dropout each for itself") {
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
    across.share(split(in_order(16), 2));  // from now on numbered, so the seed is one
    const auto seeds = world().all_gather("seeds", std::to_string(window.begin_micro_batch(2).seed));
    for (const std::string& seed : seeds) CHECK(seed == seeds[0]);
}

TEST_CASE("Shares of different micro-batches are an Error that says what each process gave") {
    if (ranks() == 1) return;
    const Items order = shuffled(40, 1, 0);
    One one;
    const auto said = [&](const std::vector<Items>& parts) {
        one.across.share(parts);
        one.add();
        std::string words = one.said();
        one.window.discard();
        return words;
    };
    const std::string other = said(split(last() ? shuffled(40, 2, 0) : order, 8));
    CHECK_THAT(other, contains("[processes] finish of window 0: " + last_rank() +
                               " passed 5 micro-batches of 40 items with checksum "));
    CHECK_THAT(other, contains(" to share(), rank 0 passed 5 micro-batches of 40 items with checksum "));
    CHECK_THAT(said(split(order, last() ? 4 : 8)),
               contains(last_rank() + " passed 10 micro-batches of 40 items"));
    CHECK_THAT(said(split(last() ? order.part(0, 39) : order, 8)),
               contains(last_rank() + " passed 5 micro-batches of 39 items"));
    CHECK(said(split(order, 8)) == "no error");
    // A process that cuts in another way has nothing to compare.
    if (last())
        one.across.begin_at(40);
    else
        one.across.share(split(order, 4));
    one.add();
    CHECK(one.said() == "no error");
}

TEST_CASE("Trainers that differ in an option, or in the number of items, are not made") {
    if (ranks() == 1) return;
    const auto made = [](std::int64_t items, TrainerOptions<float> options) {
        Linear<float> model(2, 1, {1, 0});
        Sgd<float> sgd(parameters(model), {.learning_rate = 0.1});
        DataParallel<float> across(world(), {.model = &model});
        return message_of([&] {
            Trainer<float> trainer(
                model, sgd, items,
                [](const Items&, ForwardPass&) -> Loss<Array<float>> { throw Error("not reached"); }, options,
                &across);
        });
    };
    const std::string who = "[processes] the opening of a window: " + last_rank() + " has option ",
                      way_out = "; make them equal on all processes";
    CHECK(made(48, {.shuffle = !last()}) == who + "shuffle no, rank 0 has yes" + way_out);
    CHECK(made(last() ? 41 : 48, {}) == who + "items 41, rank 0 has 48" + way_out);
    CHECK(made(48, {.per_device_batch_size = last() ? 4 : 8}) ==
          who + "per_device_batch_size 4, rank 0 has 8" + way_out);
    CHECK(made(48, {}) == "no error");
}

TEST_CASE("Weights that one process has written between windows are compared at the next window's end") {
    if (ranks() == 1) return;
    One one;
    one.add();
    CHECK(one.said() == "no error");
    const auto differs = [&](const std::string& number) {
        const std::string words = one.said();
        CHECK_THAT(words, contains("[processes] the weights, written since the last update by " +
                                   last_rank() + ", at the finish of window " + number + ": " + last_rank() +
                                   " has parameter 0 with checksum "));
        one.window.discard();
    };
    if (last()) assign(one.w, Array<float>::full({3}, 5));
    one.add();
    differs("1");
    one.add();
    differs("2");  // again, until it is mended
    assign(one.w, Array<float>::full({3}, 5));
    one.add();
    CHECK(one.said() == "no error");
    if (last()) assign(one.w, one.w.value().clone());  // the same bits: all go on
    one.add();
    CHECK(one.said() == "no error");
    // And before the first step.
    One fresh;
    if (last()) assign(fresh.w, Array<float>::full({3}, 7));
    fresh.add();
    CHECK_THAT(fresh.said(), contains("written since the last update by " + last_rank()));
    fresh.window.discard();
}

TEST_CASE("Terms that are counted once are compared by what they are") {
    if (ranks() == 1) return;
    One one;
    one.add();
    one.window.add_regularizer(sum(one.w) * (last() ? 2.F : 1.F));
    CHECK_THAT(one.said(), contains("[processes] finish of window 0: " + last_rank() +
                                    " has terms of add_regularizer() with the sum 6, rank 0 has 3"));
    one.window.discard();
    one.add();
    one.window.add_regularizer(sum(one.w));
    CHECK(one.said() == "no error");
}

}  // namespace tally::test
