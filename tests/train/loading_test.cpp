// Whatever is loaded is loaded whole or not at all: at every allocation, and with every entry of the state
// absurd, missing or too much.
#include <cmath>
#include <limits>
#include <memory>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "io/file_testing.hpp"
#include "tally/io/state_file.hpp"
#include "tally/train/weights.hpp"
#include "train/failing_new.hpp"
#include "train/trained.hpp"

namespace tally::test {
namespace {

// A training in the middle of a window, with everything that has a state.
struct World {
    explicit World(std::uint64_t seed, double rate = 0.01)
        : model(Linear<double>(4, 5, {seed, 0}), BatchNorm<double>(5), Tanh<double>(),
                Dropout<double>(0.3, 7), Linear<double>(5, 4, {seed, 1})),
          adam(parameters(model), AdamOptions{.learning_rate = rate}),
          average(parameters(model), {.decay = 0.9}),
          window(adam, {.micro_batches = 2,
                        .max_norm = 0.5,
                        .schedule = Schedule::cosine(0.02, 20),
                        .average = &average,
                        .seed = 3}),
          x(Random(seed).array<double>({6, 4})) {
        for (std::uint64_t i = 0; i < 2 * seed; ++i) {
            micro_batch();
            window.finish();
        }
        micro_batch();
    }
    void micro_batch() {
        const Items items = in_order(6);
        window.add(
            mse(model(constant(x), window.begin_micro_batch(6)), constant(Array<double>::zeros({6, 4}))));
    }
    std::string bits() {
        TrainingState state;
        window.save(state, "w", &model);
        return detail::state_bytes(state);
    }
    // Somebody who holds what will be written: who writes copies first.
    std::vector<Array<double>> copies() {
        std::vector<Array<double>> held;
        for (const Tensor64& p : parameters(model)) {
            held.push_back(p.value());
            if (p.has_grad()) held.push_back(p.grad());
        }
        for (const detail::Member<double>& member : members(model))
            if (member.buffer) held.push_back(*member.buffer);
        return held;
    }

    Sequential<double> model;
    Adam<double> adam;
    MovingAverage<double> average;
    Window<double> window;
    Array<double> x;
};

// `load(world)` with every allocation failing: before and after a failure the bits are the same, and the next
// try ends as if nothing had happened.
template <class Load> void fails_whole(Load load, std::uint64_t places, bool open = false) {
    for (const bool held : {false, true}) {
        World calm(2);
        if (!open) calm.window.discard();
        load(calm);
        const std::string wanted = calm.bits();
        for (const Scarce kind : {Scarce::once, Scarce::from_then_on, Scarce::ledger}) {
            if (TALLY_ASAN && kind != Scarce::ledger) continue;
            CAPTURE(held, static_cast<int>(kind));
            World world(2);
            if (!open) world.window.discard();
            std::vector<Array<double>> copies;
            if (held) copies = world.copies();
            std::string before = world.bits();
            REQUIRE(before != wanted);
            const std::uint64_t found = fail_each_allocation(
                kind, [](std::uint64_t) {}, [&] { load(world); },
                [&](bool threw) {
                    if (!threw) before = wanted;  // also where somebody got along without that memory
                    if (world.bits() != before) FAIL("half is loaded");
                });
            if (kind == Scarce::once) CHECK(found >= places);
        }
    }
}

}  // namespace

TEST_CASE("Weights are loaded whole or not at all wherever memory runs out") {
    const WeightOrder order = GENERATE(WeightOrder::tally, WeightOrder::pytorch);
    const Folder folder;
    const std::string path = folder / "w";
    World other(1);
    save_weights(path, other.model, order);
    fails_whole([&](World& world) { load_weights(path, world.model, order); }, 20);
}

TEST_CASE("An optimizer an average and a window are loaded whole or not at all wherever memory runs out") {
    World other(1);
    TrainingState state;
    other.window.save(state, "w", &other.model);
    fails_whole([&](World& world) { world.adam.load(state, "w/optimizer"); }, 20);
    fails_whole([&](World& world) { world.average.load(state, "w/average"); }, 10);
    fails_whole([&](World& world) { world.window.load(state, "w", &world.model); }, 60, true);
}

TEST_CASE("A window knows its parameters by their names in the model") {
    World world(1);
    TrainingState state;
    world.window.save(state, "w", &world.model);
    auto reversed = parameters(world.model);
    std::swap(reversed[1], reversed[3]);  // bias of one, bias of the other: both (5)
    Adam<double> adam(reversed, {.learning_rate = 0.01});
    MovingAverage<double> average(reversed, {.decay = 0.9});
    world.window.discard();
    WindowOptions<double> options = world.window.options();
    options.average = &average;
    Window<double> other(adam, options);
    CHECK_THROWS_WITH(other.load(state, "w", &world.model),
                      "[window] parameter 1 was saved as '0.bias', here it is '1.bias'");
}

// ---- every entry ----

namespace {

using Entry = TrainingState::Entry;

// What no training has there, whatever it is.
std::vector<Entry> absurd(const std::string& name, const Entry& entry) {
    const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
    std::vector<Entry> all;
    if (std::holds_alternative<std::int64_t>(entry)) {
        for (const std::int64_t number :
             {std::int64_t{-1}, std::int64_t{-7}, (std::int64_t{1} << 53) + 1,
              std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()})
            all.emplace_back(number);
        if (name.find("/buffers/") != name.npos) all.emplace_back((std::int64_t{1} << 32) + 1);
        all.emplace_back(1.0);
    } else if (std::holds_alternative<double>(entry)) {
        for (const double number : {nan, inf, -inf, -1.0}) all.emplace_back(number);
        all.emplace_back(std::int64_t{1});
    } else if (const auto* text = std::get_if<std::string>(&entry)) {
        all.emplace_back(*text + "x");
        all.emplace_back(std::string());
        all.emplace_back(1.0);
    } else {
        const auto& array = std::get<Array<double>>(entry);
        const auto size = static_cast<std::int64_t>(array.size());
        all.emplace_back(Array<double>::zeros({size + 1}));
        all.emplace_back(Array<double>::zeros({size, 1, 1}));
        all.emplace_back(Array<float>::zeros(array.shape()));
        all.emplace_back(std::string("numbers"));
        const bool rows = name.find("trainer/") == 0 || name == "window/schedule";
        for (const double number : {nan, inf, -3.0, 0.5, 1e300}) {
            if (!rows && name != "window/count") break;
            if (name == "window/count" && number == 0.5) continue;
            Array<double> changed = array.clone();
            if (changed.size() > 0) changed.writable()[0] = number;
            if (name == "window/count" && number == 1e300) continue;
            all.emplace_back(changed);
        }
    }
    return all;
}

}  // namespace

TEST_CASE("A state with any entry absurd or missing or too much is refused and nothing has changed") {
    const Folder folder;
    const std::string path = folder / "run.state", changed = folder / "changed.state";
    TrainerOptions<double> options = SmallTraining::options();
    const auto interrupted = [&](const std::string& checkpoint, std::int64_t micro_batches) {
        TrainerOptions<double> saving = options;
        saving.checkpoint = checkpoint;
        saving.save_micro_batches = 1;
        auto training = std::make_unique<SmallTraining>(saving);
        training->left = micro_batches;
        CHECK_THROWS_AS(training->trainer.train(), SmallTraining::Interrupted);
        return training;
    };
    interrupted(path, 10);  // in the second epoch, in mid-window
    const TrainingState state = load_state(path);
    REQUIRE(state.get<std::int64_t>("window/micro_batches") > 0);
    REQUIRE(state.has("window/effects/1.count"));

    const auto owner = interrupted(folder / "other.state", 4);
    SmallTraining& here = *owner;
    const auto bits = [&] {
        here.trainer.save(folder / "here.state");
        return read_bytes(folder / "here.state");
    };
    const std::string before = bits();
    int refused = 0;
    const auto refuses = [&](const TrainingState& wrong) {
        save_state(changed, wrong);
        CHECK_THROWS_AS(here.trainer.load(changed), Error);
        CHECK((bits() == before));
        ++refused;
    };
    for (const auto& [name, entry] : state.entries()) {
        CAPTURE(name);
        refuses(with(state, name, {}));
        for (const Entry& wrong : absurd(name, entry)) {
            CAPTURE(wrong.index());
            refuses(with(state, name, wrong));
        }
    }
    for (const char* name : {"trainer/more", "window/more", "window/parameters/6", "window/gradients/6",
                             "window/buffers/4.running_mean", "window/effects/4.mean", "window/optimizer/m/6",
                             "window/average/average/6", "window/optimizer/options/more"}) {
        CAPTURE(name);
        const Entry more = Array<double>{1, 2, 3};
        refuses(with(state, name, more));
    }
    CHECK(refused > 400);
    here.trainer.load(path);
    here.left = -1;
    here.trainer.train();
    SmallTraining plain(options);
    plain.trainer.train();
    CHECK(here.numbers() == plain.numbers());
}

}  // namespace tally::test
