// Tests that loading a training state is either complete or has no effect. Loading fails if an allocation
// fails, or if an entry of the file is invalid, missing or unexpected.
#include <cmath>
#include <limits>
#include <memory>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "io/file_testing.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/module.hpp"
#include "train/failing_new.hpp"
#include "train/trained.hpp"

namespace tally::test {
namespace {

// A LoadedTraining is a training run that is interrupted in the middle of a window. The training run has layers
// with a state, an optimizer, a moving average and a window.
struct LoadedTraining {
    explicit LoadedTraining(std::uint64_t seed, double rate = 0.01)
        : model(Linear<double>(4, 5, {seed, 0}), BatchNorm<double>(5), Tanh<double>(),
                Dropout<double>(0.3, 7), Linear<double>(5, 4, {seed, 1})),
          adam(model.parameters(), Adam<double>::Options{.learning_rate = rate}),
          average(model.parameters(), {.decay = 0.9}),
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
        const Items items = Items::in_order(6);
        window.add(
            mse(model(constant(x), window.begin_micro_batch(6)), constant(Array<double>::zeros({6, 4}))));
    }
    std::string bits() {
        TrainingState state;
        window.save(state, "w", &model);
        return detail::state_bytes(state);
    }
    // Returns an Array for each array that loading writes, and shares the memory. Because the memory is
    // shared, loading must copy the arrays before it writes.
    std::vector<Array<double>> copies() {
        std::vector<Array<double>> held;
        for (const Tensor64& p : model.parameters()) {
            held.push_back(p.value());
            if (p.has_grad()) held.push_back(p.grad());
        }
        for (const detail::Member<double>& member : detail::members(model))
            if (member.buffer) held.push_back(*member.buffer);
        return held;
    }

    Sequential<double> model;
    Adam<double> adam;
    MovingAverage<double> average;
    Window<double> window;
    Array<double> x;
};

// Calls load(training) once for each allocation that load() makes, and makes this allocation fail. Each call
// must either change nothing or load everything.
template <class Load> void check_failed_loads(Load load, std::uint64_t places, bool open = false) {
    for (const bool held : {false, true}) {
        LoadedTraining undisturbed(2);
        if (!open) undisturbed.window.discard();
        load(undisturbed);
        const std::string wanted = undisturbed.bits();
        for (const Scarce kind : {Scarce::once, Scarce::from_then_on, Scarce::ledger}) {
            if (TALLY_ASAN && kind != Scarce::ledger) continue;
            CAPTURE(held, static_cast<int>(kind));
            LoadedTraining training(2);
            if (!open) training.window.discard();
            std::vector<Array<double>> copies;
            if (held) copies = training.copies();
            std::string before = training.bits();
            REQUIRE(before != wanted);
            const std::uint64_t found = fail_each_allocation(
                kind, [](std::uint64_t) {}, [&] { load(training); },
                [&](bool threw) {
                    if (!threw) before = wanted;  // loading may succeed without this allocation
                    if (training.bits() != before) FAIL("half is loaded");
                });
            if (kind == Scarce::once) CHECK(found >= places);
        }
    }
}

}  // namespace

TEST_CASE("load_weights: weights are loaded completely or not at all if an allocation fails") {
    const WeightOrder order = GENERATE(WeightOrder::tally, WeightOrder::pytorch);
    const Folder folder;
    const std::string path = folder / "w";
    LoadedTraining other(1);
    other.model.save_weights(path, order);
    check_failed_loads([&](LoadedTraining& training) { training.model.load_weights(path, order); }, 20);
}

TEST_CASE("Window::load: all parts are loaded completely or not at all if an allocation fails") {
    LoadedTraining other(1);
    TrainingState state;
    other.window.save(state, "w", &other.model);
    check_failed_loads([&](LoadedTraining& training) { training.adam.load(state, "w/optimizer"); }, 20);
    check_failed_loads([&](LoadedTraining& training) { training.average.load(state, "w/average"); }, 10);
    check_failed_loads([&](LoadedTraining& training) { training.window.load(state, "w", &training.model); },
                       60, true);
}

TEST_CASE("Window::load: parameters are identified by their names in the model") {
    LoadedTraining training(1);
    TrainingState state;
    training.window.save(state, "w", &training.model);
    auto reversed = training.model.parameters();
    std::swap(reversed[1], reversed[3]);  // both are biases of shape (5)
    Adam<double> adam(reversed, {.learning_rate = 0.01});
    MovingAverage<double> average(reversed, {.decay = 0.9});
    training.window.discard();
    Window<double>::Options options = training.window.options();
    options.average = &average;
    Window<double> other(adam, options);
    CHECK_THROWS_WITH(other.load(state, "w", &training.model),
                      "[window] parameter 1 was saved as '0.bias', here it is '1.bias'");
}

// ---- invalid entries of a state ----

namespace {

using Entry = TrainingState::Entry;

// Returns values that are invalid for the given entry, so that loading must reject the values.
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

TEST_CASE("Trainer::load: a state with an invalid, missing or surplus entry changes nothing") {
    const Folder folder;
    const std::string path = folder / "run.state", changed = folder / "changed.state";
    Trainer<double>::Options options = SmallTraining::options();
    const auto interrupted = [&](const std::string& checkpoint, std::int64_t micro_batches) {
        Trainer<double>::Options saving = options;
        saving.checkpoint = checkpoint;
        saving.save_micro_batches = 1;
        auto training = std::make_unique<SmallTraining>(saving);
        training->left = micro_batches;
        CHECK_THROWS_AS(training->trainer.train(), SmallTraining::Interrupted);
        return training;
    };
    interrupted(path, 10);  // interrupts the second epoch in the middle of a window
    const TrainingState state = TrainingState::load(path);
    REQUIRE(state.get<std::int64_t>("window/micro_batches") > 0);
    REQUIRE(state.has("window/effects/1.count"));

    const auto owner = interrupted(folder / "other.state", 4);
    SmallTraining& here = *owner;
    const auto bits = [&] {
        here.trainer.save(folder / "here.state");
        return read_bytes(folder / "here.state");
    };
    const std::string before = bits();
    int rejections = 0;
    const auto rejects = [&](const TrainingState& wrong) {
        wrong.save(changed);
        CHECK_THROWS_AS(here.trainer.load(changed), Error);
        CHECK((bits() == before));
        ++rejections;
    };
    for (const auto& [name, entry] : state.entries()) {
        CAPTURE(name);
        rejects(with(state, name, {}));
        for (const Entry& wrong : absurd(name, entry)) {
            CAPTURE(wrong.index());
            rejects(with(state, name, wrong));
        }
    }
    for (const char* name : {"trainer/more", "window/more", "window/parameters/6", "window/gradients/6",
                             "window/buffers/4.running_mean", "window/effects/4.mean", "window/optimizer/m/6",
                             "window/average/average/6", "window/optimizer/options/more"}) {
        CAPTURE(name);
        const Entry more = Array<double>{1, 2, 3};
        rejects(with(state, name, more));
    }
    CHECK(rejections > 400);
    here.trainer.load(path);
    here.left = -1;
    here.trainer.train();
    SmallTraining plain(options);
    plain.trainer.train();
    CHECK(here.numbers() == plain.numbers());
}

}  // namespace tally::test
