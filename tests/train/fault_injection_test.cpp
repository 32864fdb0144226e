// Makes each allocation of an accumulation window fail in one test run. After each failure the memory account
// is correct, no update is incomplete, and the next window is correct.
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/checkpoint/revolve.hpp"
#include "tally/train/exact_batch_norm.hpp"
#include "tally/train/grad_cache.hpp"
#include "tally/train/image_layers.hpp"
#include "tally/train/micro_batch.hpp"
#include "tally/train/window.hpp"

namespace tally::test {
namespace {

enum class TrainingKind { plain, images, exact_batch_norm, cached, checkpointed, revolve, drop_micro };

template <class S> struct Training {
    explicit Training(TrainingKind of)
        : kind(of),
          model(has_images() ? network_of_images() : network()),
          adam(model.parameters(), Adam<double>::Options{.learning_rate = 0.01}),
          average(model.parameters(), {.decay = 0.9}),
          window(adam,
                 {.non_finite = kind == TrainingKind::drop_micro ? NonFinite::drop_micro : NonFinite::raise,
                  .max_norm = 0.5,
                  .schedule = Schedule::cosine(0.02, 20),
                  .average = &average,
                  .seed = 3}),
          x(Random(1).array<S>(has_images() ? Shape{7, 2, 5, 5} : Shape{7, 25})),
          labels(Random(2).integers({7}, 0, 2)) {
        if (kind == TrainingKind::checkpointed) model.checkpoint({.segments = 3});
        if (kind == TrainingKind::drop_micro)  // the second of three micro-batches contains NaN
            x.writable()[3 * 25] = std::numeric_limits<S>::quiet_NaN();
    }
    bool has_images() const { return kind == TrainingKind::images || kind == TrainingKind::checkpointed; }

    static Sequential<S> network() {
        return Sequential<S>{Linear<S>(25, 6, {1, 0}), BatchNorm<S>(6), Tanh<S>(), Dropout<S>(0.3, 7),
                             Linear<S>(6, 3, {1, 1})};
    }
    static Sequential<S> network_of_images() {
        return Sequential<S>{Conv2d<S>(2, 4, 3, {1, 0}, {.padding = 1, .bias = false}),
                             BatchNorm<S>(4),
                             ReLU<S>(),
                             MaxPool2d<S>(2),
                             Flatten<S>(),
                             Dropout<S>(0.3, 7),
                             Linear<S>(16, 3, {1, 1})};
    }

    void run() {
        const auto y_of = [&](const Items& items, ForwardPass& pass) {
            const Var<Array<S>> part = constant(rows(x, items));
            return kind == TrainingKind::revolve ? Revolve<Array<S>>(model.chain(pass), 2)(part)
                                                 : model(part, pass);
        };
        const auto loss = [&](const auto& y, const Items& items) {
            return cross_entropy(y, rows(labels, items));
        };
        const std::vector<Items> parts = split(Items::in_order(7), {3, 2, 2});
        if (kind == TrainingKind::exact_batch_norm)
            add_with_exact_batch_norm<S>(
                window, model, parts, [&](const Items& items) { return constant(rows(x, items)); }, loss);
        else if (kind == TrainingKind::cached)
            add_cached<S>(window, parts, {y_of, y_of}, [](const auto& r) { return info_nce(r[0], r[1]); });
        else
            for (const Items& part : parts)
                window.add(loss(y_of(part, window.begin_micro_batch(part.count())), part));
        window.add_regularizer(sum(model.parameters()[0] * model.parameters()[0]) * S(0.01));
        const auto done = window.finish();
        REQUIRE(done.stepped);
        REQUIRE(done.dropped == (kind == TrainingKind::drop_micro ? 1 : 0));
    }

    // Returns parameters, buffers, averages and the optimizer's state.
    std::vector<double> numbers() {
        std::vector<double> all;
        const auto append = [&](const auto& array) {
            for (const auto number : array.to_vector()) all.push_back(static_cast<double>(number));
        };
        for (const detail::Member<S>& member : detail::members(model)) {
            if (member.parameter) append(member.parameter.value());
            if (member.buffer) append(*member.buffer);
            if (member.counter) append(*member.counter);
        }
        for (std::size_t i = 0; i < model.parameters().size(); ++i) append(average.value(i));
        TrainingState state;
        window.save(state, "window", &model);
        for (const auto& [name, entry] : state.entries()) {
            if (const auto* array = std::get_if<Array<S>>(&entry)) append(*array);
            if (const auto* number = std::get_if<std::int64_t>(&entry))
                all.push_back(static_cast<double>(*number));
        }
        return all;
    }

    std::size_t gradient_bytes() {
        std::size_t bytes = 0;
        for (const auto& p : model.parameters())
            if (p.node()->gradient.storage()) bytes += p.node()->gradient.storage()->bytes;
        return bytes;
    }

    TrainingKind kind;
    Sequential<S> model;
    Adam<S> adam;
    MovingAverage<S> average;
    Window<S> window;
    Array<S> x;
    Array<std::int32_t> labels;
};

// Runs `windows` complete windows and makes the n-th allocation of the next window fail, for n = 1, 2, 3, ...
// until no allocation fails. Returns the number of failed allocations.
template <class S> std::uint64_t fail_everywhere(TrainingKind kind, int windows, bool shared) {
    for (std::uint64_t n = 1;; ++n) {
        CAPTURE(static_cast<int>(kind), windows, shared, n);
        Training<S> failing(kind), undisturbed(kind);
        for (Training<S>* each : {&failing, &undisturbed})
            for (int i = 0; i < windows; ++i) each->run();
        TrainingState others, of_undisturbed;  // if these states share the arrays, the next write must copy
        if (shared) {
            failing.average.save(others, "average");
            failing.adam.save(others, "adam");
            undisturbed.average.save(of_undisturbed, "average");
            undisturbed.adam.save(of_undisturbed, "adam");
        }
        const std::vector<double> before = failing.numbers();
        const memory::Report report = memory::report();
        const std::size_t gradients = failing.gradient_bytes();
        const std::int64_t nodes = Node::live_count();

        bool failed = false;
        memory::detail::fail_allocation(n);
        try {
            failing.run();
        } catch (const OutOfMemory&) {
            failed = true;
        }
        memory::detail::fail_allocation(0);
        if (!failed) return n - 1;

        // After a failure the Window makes no update, and only discard() is allowed.
        failing.window.discard();
        CHECK((failing.numbers() == before));
        CHECK(Node::live_count() == nodes);
        const memory::Report after = memory::report();
        // The window may have allocated gradient buffers before the failure.
        const std::size_t more = failing.gradient_bytes() - gradients;
        CHECK(after.in_use_by[std::size_t(MemoryClass::gradient)] ==
              report.in_use_by[std::size_t(MemoryClass::gradient)] + more);
        CHECK(after.in_use_by[std::size_t(MemoryClass::saved)] ==
              report.in_use_by[std::size_t(MemoryClass::saved)]);
        CHECK(after.in_use_by[std::size_t(MemoryClass::parameter)] ==
              report.in_use_by[std::size_t(MemoryClass::parameter)]);
        if (!shared)  // otherwise, arrays may have been copied before the failure
            CHECK(after.in_use == report.in_use + more);

        failing.run();
        undisturbed.run();
        CHECK((failing.numbers() == undisturbed.numbers()));
    }
}

}  // namespace

#ifdef NDEBUG
#define EACH_TYPE float, double
#else
#define EACH_TYPE double  // only double with assertions and under the sanitizers
#endif
TEMPLATE_TEST_CASE("Window: a failed allocation leaves the training unchanged", "", EACH_TYPE) {
    const Poison poison;
    const std::size_t in_use = memory::in_use();
    const std::int64_t nodes = Node::live_count();
    for (const TrainingKind kind :
         {TrainingKind::plain, TrainingKind::images, TrainingKind::exact_batch_norm, TrainingKind::cached,
          TrainingKind::checkpointed, TrainingKind::revolve, TrainingKind::drop_micro})
        for (const int windows : {0, 1})
            for (const bool shared : {false, true})
                CHECK(fail_everywhere<TestType>(kind, windows, shared) > 40);
    CHECK(memory::in_use() == in_use);
    CHECK(Node::live_count() == nodes);
}

TEST_CASE("MicroBatchSize: a failed allocation halves the micro-batch, and the update completes") {
    struct Net {
        Sequential<double> model{Linear<double>(3, 4, {1, 0}), Tanh<double>(), Dropout<double>(0.4, 1),
                                 Linear<double>(4, 2, {1, 2})};
        Adam<double> adam{model.parameters(), Adam<double>::Options{.learning_rate = 0.01}};
        Window<double> window{adam, {.max_norm = 0.1}};
        Array<double> x = Random(1).array<double>({8, 3}), target = Random(2).array<double>({8, 2});
        Window<double>::Result update(MicroBatchSize& size) {
            return size.update(window, 8, [&](std::int64_t most) {
                for (const Items& micro : split(Items::in_order(8), most)) {
                    const auto y = model(constant(rows(x, micro)), window.begin_micro_batch(micro.count()));
                    window.add(mse(y, constant(rows(target, micro))));
                }
            });
        }
        std::vector<double> numbers() {
            std::vector<double> all;
            for (const Tensor64& p : model.parameters())
                for (const double number : p.value().to_vector()) all.push_back(number);
            return all;
        }
    };
    Net whole, halves;
    MicroBatchSize eight(8), four(4);
    whole.update(eight);
    halves.update(four);
    for (std::uint64_t n = 1;; ++n) {
        CAPTURE(n);
        Net net;
        MicroBatchSize size(8);
        memory::detail::fail_allocation(n);
        const auto done = net.update(size);
        memory::detail::fail_allocation(0);
        CHECK(done.stepped);
        CHECK(done.count == 16);
        CHECK(net.window.updates() == 1);
        const bool failed = size.retries() > 0;
        CHECK((net.numbers() == (failed ? halves : whole).numbers()));
        CHECK(size.now() == (failed ? 4 : 8));
        if (!failed) break;
        CHECK(size.retries() == 1);
        CHECK(n < 1000);
    }
}

TEST_CASE("Window: after an error in a micro-batch only discard() is possible") {
    Training<double> training(TrainingKind::plain);
    const auto forward = [&] {
        const auto y = training.model(constant(training.x), training.window.begin_micro_batch(7));
        return cross_entropy(y, training.labels);
    };
    std::uint64_t failures = 0;
    for (std::uint64_t n = 1;; ++n) {
        const auto loss = forward();
        memory::detail::fail_allocation(n);
        bool failed = false;
        try {
            training.window.add(loss);
        } catch (const OutOfMemory&) {
            failed = true;
        }
        memory::detail::fail_allocation(0);
        if (failed) {
            ++failures;
            CHECK_THROWS_WITH(training.window.finish(), contains("discard() the window and start again"));
            CHECK_THROWS_WITH(training.window.add(forward()),
                              contains("discard() the window and start again"));
        }
        training.window.discard();
        if (!failed) break;
    }
    CHECK(failures > 5);
    forward().sum.backward();
    memory::detail::fail_allocation(1);
    CHECK_THROWS_AS(training.window.after_backward(2), OutOfMemory);
    CHECK_THROWS_WITH(training.window.finish(), contains("discard() the window and start again"));
}

}  // namespace tally::test
