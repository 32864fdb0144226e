// Tests MicroBatchSize. The update must equal the update with the undivided batch. An attempt that runs out
// of memory must have no effect. If no micro-batch size fits, the Error states the required bytes.
#include "tally/train/micro_batch.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "memory/memory_helpers.hpp"
#include "tally/base/text.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/trainer.hpp"

namespace tally::test {
namespace {

[[noreturn]] void run_out() { throw OutOfMemory("none left", Device::cpu, 64, 0); }

// A SmallNet stores a network with dropout, random data and a window. Each call of finish() makes one update.
struct SmallNet {
    SmallNet(std::uint64_t seed, std::int64_t items, std::int64_t width)
        : model(Linear<double>(width, width, {seed, 0}), Tanh<double>(), Dropout<double>(0.3, 2),
                Linear<double>(width, width, {seed, 1}), Tanh<double>(), Linear<double>(width, 2, {seed, 3})),
          adam(model.parameters(), Adam<double>::Options{.learning_rate = 0.01}),
          window(adam, {.max_norm = 1.0, .seed = seed}),
          x(Random(seed).array<double>({items, width})),
          target(Random(seed + 1).array<double>({items, 2})) {}

    void fill(const Items& items, std::int64_t most) {
        for (const Items& micro : split(items, most)) {
            const Tensor64 y = model(constant(rows(x, micro)), window.begin_micro_batch(micro.count()));
            window.add(mse(y, constant(rows(target, micro))));
        }
    }
    std::vector<double> numbers() {
        std::vector<double> all;
        for (const Tensor64& p : model.parameters())
            for (const double number : p.value().to_vector()) all.push_back(number);
        return all;
    }

    Sequential<double> model;
    Adam<double> adam;
    Window<double> window;
    Array<double> x, target;
};

double worst(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
}

// Makes two updates with micro-batches of at most `most` items. Returns the peak of the used memory.
std::size_t needed(std::uint64_t seed, std::int64_t items, std::int64_t width, std::int64_t most) {
    SmallNet net(seed, items, width);
    memory::reset_peak();
    for (int i = 0; i < 2; ++i) {
        net.fill(Items::in_order(items), most);
        net.window.finish();
    }
    return memory::peak();
}

}  // namespace

TEST_CASE("Law: with any budget that one item fits, the update is that of the undivided window") {
    const std::uint64_t seed = GENERATE(range(1u, 25u));
    Random random(seed);
    const std::int64_t items = random.whole(16, 96), width = random.whole(8, 40);
    const std::size_t least = needed(seed, items, width, 1), most = needed(seed, items, width, items);
    const auto bytes = static_cast<std::size_t>(random.between(1.1, 1.6) * static_cast<double>(least));
    CAPTURE(seed, items, width, least, most, bytes);
    std::vector<double> undivided;
    {
        SmallNet net(seed, items, width);
        for (int i = 0; i < 2; ++i) {
            net.fill(Items::in_order(items), items);
            net.window.finish();
        }
        undivided = net.numbers();
    }
    std::vector<double> got;
    std::vector<std::int64_t> found;
    MicroBatchSize size(items);
    {
        const Budget budget(bytes);
        SmallNet net(seed, items, width);
        for (int i = 0; i < 2; ++i) {
            const auto done = size.update(
                net.window, items, [&](std::int64_t at_most) { net.fill(Items::in_order(items), at_most); });
            found.push_back(size.now());
            CHECK(done.stepped);
            CHECK(done.count == static_cast<double>(2 * items));
        }
        CHECK(net.window.updates() == 2);
        got = net.numbers();
    }
    CHECK((size.retries() > 0) == (size.now() < items));
    if (bytes < most - most / 16) CHECK(size.retries() > 0);
    // Adam divides each gradient by its magnitude, so rounding errors of tiny gradients become visible.
    CHECK(worst(got, undivided) < 1e-9);

    SmallNet by_hand(seed, items, width);  // this net uses the found sizes from the start
    for (const std::int64_t at_most : found) {
        by_hand.fill(Items::in_order(items), at_most);
        by_hand.window.finish();
    }
    CHECK((got == by_hand.numbers()));
}

TEST_CASE("MicroBatchSize::update: a failed try has no effect") {
    const std::uint64_t seed = GENERATE(range(1u, 9u));
    CAPTURE(seed);
    Random random(seed);
    SmallNet net(seed, 24, 8), undisturbed(seed, 24, 8);
    if (random.coin()) {  // allocates gradients and the optimizer's state beforehand
        for (SmallNet* each : {&net, &undisturbed}) {
            each->fill(Items::in_order(24), 24);
            each->window.finish();
        }
    }
    const std::size_t in_use = memory::in_use();
    const memory::Report before = memory::report();
    const std::int64_t nodes = Node::live_count();
    const std::int64_t fits = random.whole(1, 5);
    int tries = 0;
    MicroBatchSize size(24);
    const auto done = size.update(net.window, 24, [&](std::int64_t most) {
        ++tries;
        CHECK(memory::in_use() == in_use);
        for (std::size_t row = 0; row < memory::detail::memory_classes; ++row)
            CHECK(memory::report().in_use_by[row] == before.in_use_by[row]);
        CHECK(memory::report().cached <= (tries == 1 ? before.cached : 0));
        CHECK(Node::live_count() == nodes);
        CHECK(net.window.empty());
        for (const Tensor64& p : net.model.parameters()) CHECK_FALSE(p.has_grad());
        net.fill(Items::in_order(8), std::min<std::int64_t>(most, 8));  // writes gradients
        net.window.add_regularizer(sum(net.model.parameters()[0]) * 0.0);
        if (most > fits) run_out();
        net.fill(Items::in_order(24).part(8, 24), most);
    });
    std::int64_t expected = 24;
    for (; expected > fits; expected /= 2) {
    }
    CHECK(size.now() == expected);
    CHECK(size.retries() == tries - 1);
    CHECK(done.micro_batches == (8 + expected - 1) / expected + (16 + expected - 1) / expected);
    CHECK(done.count == 48);

    undisturbed.fill(Items::in_order(8), expected);
    undisturbed.fill(Items::in_order(24).part(8, 24), expected);
    undisturbed.window.add_regularizer(sum(undisturbed.model.parameters()[0]) * 0.0);
    undisturbed.window.finish();
    CHECK(net.numbers() == undisturbed.numbers());
    // Later updates use the micro-batch size that the first update found.
    size.update(net.window, 24, [&](std::int64_t most) {
        CHECK(most == expected);
        net.fill(Items::in_order(24), most);
    });
    CHECK(size.retries() == tries - 1);
}

TEST_CASE("MicroBatchSize::update: a size larger than the number of items is halved from that number") {
    SmallNet net(1, 6, 4);
    MicroBatchSize size(1000);
    std::vector<std::int64_t> tried;
    size.update(net.window, 6, [&](std::int64_t most) {
        tried.push_back(most);
        if (most > 1) run_out();
        net.fill(Items::in_order(6), most);
    });
    CHECK(tried == std::vector<std::int64_t>{1000, 3, 1});
}

TEST_CASE("MicroBatchSize::update: if not even one item fits, the error lists the memory") {
    const std::int64_t width = 64;
    const auto message = [&](std::size_t bytes, double more) -> std::string {
        const Budget budget(bytes);
        SmallNet net(1, 4, width);
        MicroBatchSize size(4);
        try {
            size.update(net.window, 4, [&](std::int64_t most) {
                net.fill(Items::in_order(4), most);  // allocates gradients, which are fixed memory
                if (more > 0) Array<double>::zeros({static_cast<std::int64_t>(more)});
            });
        } catch (const OutOfMemory& error) {
            CHECK(size.now() == 1);
            CHECK(size.retries() == 2);
            CHECK(net.window.empty());
            for (const Tensor64& p : net.model.parameters()) CHECK_FALSE(p.has_grad());
            CHECK(net.adam.state_size().now == 0);
            return error.what();
        }
        return "it fits";
    };
    const std::size_t values = (2 * (64 * 64 + 64) + 64 * 2 + 2) * 8;
    const std::string fixed = "Fixed, whatever the size: " + detail::format_bytes(4 * values) +
                              " (parameters " + detail::format_bytes(values) + ", gradients " +
                              detail::format_bytes(values) + ", optimizer " +
                              detail::format_bytes(2 * values) + "), and ";
    CHECK(message(8 * values, 0) == "it fits");
    const std::string large_item = message(8 * values, 1 << 20);
    CHECK_THAT(large_item, contains("[micro_batch] not even one item at a time fits. " + fixed));
    CHECK_THAT(large_item,
               contains("One item takes 8.0 MiB or more. The budget is " + detail::format_bytes(8 * values) +
                        "; use checkpoints or a smaller model"));
    // Parameters, gradients and activations fit into memory, but the optimizer's moments do not fit.
    const std::string large_update = message(3 * values, 0);
    CHECK_THAT(large_update, contains(fixed));
    CHECK_THAT(large_update, contains("One item fits, but then the update asked for "));
}

TEST_CASE("MicroBatchSize::update: windows that cannot be retried throw an Error") {
    SmallNet net(1, 4, 4);
    MicroBatchSize size(4);
    const auto fill = [&](std::int64_t most) { net.fill(Items::in_order(4), most); };
    CHECK_THROWS_WITH(MicroBatchSize(0), contains("[micro_batch] a micro-batch holds at least one item; 0"));
    net.window.plan_micro_batches(3);
    CHECK_THROWS_WITH(size.update(net.window, 4, fill), contains("planned for 3 micro-batches"));
    net.window.plan_micro_batches(0);
    net.window.add_regularizer(sum(net.model.parameters()[0]));
    CHECK_THROWS_WITH(size.update(net.window, 4, fill), contains("the window is not empty"));
    net.window.discard();
    fill(4);
    CHECK_THROWS_WITH(size.update(net.window, 4, fill), contains("the window is not empty"));
    net.window.discard();
    CHECK(size.update(net.window, 4, fill).stepped);
    // Exceptions other than OutOfMemory reach the caller.
    CHECK_THROWS_AS(size.update(net.window, 4, [](std::int64_t) { throw 5; }), int);
    CHECK(size.retries() == 0);
}

// ---- the Trainer's option ----

namespace {

// Defines a training run that runs out of memory if a micro-batch has more than `fits` items.
struct Fitted {
    struct Interrupted {};

    Fitted(Trainer<double>::Options options, std::int64_t at_most)
        : net(3, 26, 4), fits(at_most), sgd(net.model.parameters(), {.learning_rate = 0.1, .momentum = 0.9}) {
        trainer.emplace(
            net.model, sgd, 26,
            [this](const Items& items, ForwardPass& pass) {
                if (left-- == 0) throw Interrupted();
                if (items.count() > fits) run_out();
                return mse(net.model(constant(rows(net.x, items)), pass), constant(rows(net.target, items)));
            },
            options);
    }
    std::vector<double> numbers() { return net.numbers(); }

    SmallNet net;
    std::int64_t fits, left = -1;  // most items that fit; number of micro-batches before Interrupted
    Sgd<double> sgd;
    std::optional<Trainer<double>> trainer;
};

Trainer<double>::Options fitted_options() {
    return {.per_device_batch_size = 8,
            .auto_find_batch_size = true,
            .gradient_accumulation_steps = {{0, 2}, {2, 1}},
            .num_train_epochs = 3,
            .seed = 4,
            .max_grad_norm = 1.0};
}

}  // namespace

TEST_CASE("Trainer: auto_find_batch_size finds the size that fits and yields the same updates") {
    Fitted roomy(fitted_options(), 8);
    roomy.trainer->train();
    CHECK(roomy.trainer->micro_batch_size() == 8);
    CHECK(roomy.trainer->summary().retries == 0);
    CHECK(roomy.trainer->updates() == 2 + 2 + 4);
    Trainer<double>::Options plain = fitted_options();
    plain.auto_find_batch_size = false;
    Fitted fixed_size(plain, 8);
    fixed_size.trainer->train();
    CHECK(roomy.numbers() == fixed_size.numbers());
    CHECK_THROWS_AS(Fitted(plain, 7).trainer->train(), OutOfMemory);

    for (const std::int64_t fits : {1, 2, 3, 5, 7}) {
        Fitted narrow(fitted_options(), fits);
        narrow.trainer->train();
        CAPTURE(fits);
        CHECK(narrow.trainer->micro_batch_size() == (fits >= 4 ? 4 : fits >= 2 ? 2 : 1));
        CHECK(narrow.trainer->summary().retries == (fits >= 4 ? 1 : fits >= 2 ? 2 : 3));
        CHECK(narrow.trainer->summary().samples == 3 * 26);
        CHECK(narrow.trainer->updates() == 8);
        CHECK(worst(narrow.numbers(), roomy.numbers()) < 1e-12);
        REQUIRE(narrow.trainer->records().size() == roomy.trainer->records().size());
        for (std::size_t i = 0; i < roomy.trainer->records().size(); ++i) {
            const Trainer<double>::Record &a = narrow.trainer->records()[i], &b = roomy.trainer->records()[i];
            CHECK(a.count == b.count);
            CHECK(std::abs(a.sum - b.sum) < 1e-12);
            CHECK(a.epoch == b.epoch);
        }
        CHECK_THAT(to_string(narrow.trainer->summary()), contains("items a micro-batch"));
    }
    CHECK_THROWS_WITH(Fitted(fitted_options(), 0).trainer->train(), contains("not even one item"));
}

TEST_CASE("Trainer: Tail::drop drops a window that lacks a micro-batch for every size that fits") {
    for (const std::int64_t items : {16, 17, 24, 25, 31}) {
        const auto updates = [&](bool automatic, std::int64_t fits) {
            SmallNet net(3, items, 4);
            Sgd<double> sgd(net.model.parameters(), {.learning_rate = 0.1});
            Trainer<double> trainer(net.model, sgd, items,
                                    [&](const Items& some, ForwardPass& pass) {
                                        if (some.count() > fits) run_out();
                                        return mse(net.model(constant(rows(net.x, some)), pass),
                                                   constant(rows(net.target, some)));
                                    },
                                    {.per_device_batch_size = 8,
                                     .auto_find_batch_size = automatic,
                                     .gradient_accumulation_steps = 2,
                                     .tail = Tail::drop});
            trainer.train();
            return std::pair(trainer.updates(), trainer.summary().dropped_micro_batches);
        };
        CAPTURE(items);
        CHECK(updates(true, 8) == updates(false, 8));
        CHECK(updates(true, 3) == updates(false, 8));
    }
}

TEST_CASE("Trainer: a resumed training keeps the found size") {
    const Folder folder;
    Fitted plain(fitted_options(), 3);
    plain.trainer->train();
    Trainer<double>::Options options = fitted_options();
    options.checkpoint = folder / "run.state";
    options.save_steps = 1;
    {
        Fitted first(options, 3);
        first.left = 2 + 8 + 1;  // interrupts the second update
        CHECK_THROWS_AS(first.trainer->train(), Fitted::Interrupted);
    }
    Fitted resumed(options, 3);
    CHECK(resumed.trainer->micro_batch_size() == 2);
    CHECK(resumed.trainer->updates() == 1);
    resumed.trainer->train();
    CHECK(resumed.trainer->summary().retries == 2);
    CHECK(resumed.numbers() == plain.numbers());
}

TEST_CASE("Trainer: a training that ran out of memory can resume with auto_find_batch_size") {
    const Folder folder;
    Trainer<double>::Options options = fitted_options();
    options.auto_find_batch_size = false;
    options.checkpoint = folder / "run.state";
    options.save_steps = 1;
    {
        Fitted first(options, 8);
        first.left = 3;
        CHECK_THROWS_AS(first.trainer->train(), Fitted::Interrupted);
    }
    options.auto_find_batch_size = true;
    Fitted resumed(options, 5);
    CHECK(resumed.trainer->updates() == 1);
    resumed.trainer->train();
    CHECK(resumed.trainer->micro_batch_size() == 4);
}

TEST_CASE("Trainer: options that auto_find_batch_size excludes throw an Error") {
    const auto construct_with = [](auto change) {
        Trainer<double>::Options options = fitted_options();
        change(options);
        Fitted training(options, 8);
    };
    CHECK_THROWS_WITH(construct_with([](auto& o) { o.tail = Tail::carry; }), contains("Tail::carry"));
    CHECK_THROWS_WITH(construct_with([](auto& o) { o.weigh = Weigh::micro_batches; }),
                      contains("depend on memory"));
    CHECK_THROWS_WITH(construct_with([](auto& o) { o.save_micro_batches = 2; }),
                      contains("choose save_steps"));
}

}  // namespace tally::test
