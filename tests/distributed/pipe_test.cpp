// Tests the memory, messages and errors of a Pipe, whose gradients must equal those of one process.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

constexpr Timetable::Schedule both[] = {Timetable::Schedule::gpipe,
                                        Timetable::Schedule::one_forward_one_backward};

std::string last_rank() { return "rank " + std::to_string(ranks() - 1); }

// Generates the stages of a model, and micro-batches of random sizes. All processes generate equal numbers.
template <class S> struct RandomPipe {
    using V = Var<Array<S>>;
    enum Kind { dense, twice, bare, same };
    struct Layer {
        Kind kind;
        std::vector<Array<S>> values;
    };
    std::vector<Layer> layers;
    std::vector<std::size_t> begin;  // index of each process's first stage, and then the number of stages
    std::vector<Array<S>> inputs, targets;
    Timetable::Schedule schedule;

    explicit RandomPipe(Random& r) : schedule(both[r.whole(0, 1)]) {
        begin.push_back(0);
        for (std::size_t rank = 0; rank < ranks(); ++rank)
            begin.push_back(begin.back() + static_cast<std::size_t>(r.whole(1, 2)));
        std::int64_t width = r.whole(1, 5);
        const std::int64_t first = width;
        while (layers.size() < begin.back()) {
            const auto kind = layers.size() + 1 == begin.back() ? dense : static_cast<Kind>(r.whole(0, 3));
            const std::int64_t next = kind == dense ? r.whole(1, 5) : width;
            Layer layer{kind, {}};
            if (kind == dense || kind == twice) layer.values.push_back(r.array<S>({width, next}));
            if (kind == dense) layer.values.push_back(r.array<S>({next}));
            layers.push_back(layer);
            width = next;
        }
        for (std::int64_t m = r.whole(1, 8); m-- > 0;) {
            const std::int64_t items = r.whole(0, 9) == 0 ? 3000 : r.whole(1, 4);  // 3000 exceed one message
            inputs.push_back(r.array<S>({items, first}));
            targets.push_back(r.array<S>({items, width}));
        }
    }
    int micro_batches() const { return static_cast<int>(inputs.size()); }

    std::vector<std::vector<V>> leaves() const {
        std::vector<std::vector<V>> all;
        for (const Layer& layer : layers) {
            all.emplace_back();
            for (const Array<S>& value : layer.values) all.back().push_back(parameter(value.clone()));
        }
        return all;
    }
    V forward(std::size_t stage, const std::vector<V>& leaves, const V& x) const {
        switch (layers[stage].kind) {
            case dense:
                return tanh(matmul(x, leaves[0]) + leaves[1]);
            case twice:
                return x * 0.5 + tanh(matmul(x, leaves[0])) * x;
            case bare:
                return x * x;
            case same:
                break;
        }
        return x;
    }
    V loss(const V& y, int k) const {
        return sum(detail::squared_difference(y, constant(targets[static_cast<std::size_t>(k)]))) / 7;
    }
    // Trains on one process. Each micro-batch passes through all stages before the next micro-batch begins.
    double alone(const std::vector<std::vector<V>>& leaves) const {
        double sum = 0;
        for (int k = 0; k < micro_batches(); ++k) {
            V x = constant(inputs[static_cast<std::size_t>(k)]);
            for (std::size_t stage = 0; stage < layers.size(); ++stage) x = forward(stage, leaves[stage], x);
            const V of = loss(x, k);
            sum += static_cast<double>(of.item());
            of.backward();
        }
        return sum;
    }
    std::uint64_t passed() const {  // counts the numbers that processes send: results and gradients
        std::uint64_t numbers = 0;
        for (std::size_t rank = 1; rank < ranks(); ++rank)
            for (const Array<S>& input : inputs) {
                std::int64_t width = input.shape()[1];
                for (std::size_t stage = 0; stage < begin[rank]; ++stage)
                    if (layers[stage].kind == dense) width = layers[stage].values[0].shape()[1];
                numbers += static_cast<std::uint64_t>(2 * input.shape()[0] * width);
            }
        return numbers;
    }
    // Returns a Pipe with the stages of this process. Each forward pass calls the function `before`.
    using Before = std::function<void(std::size_t stage, int k)>;
    Pipe<S> pipe(const std::vector<std::vector<V>>& leaves, const Before& before = {}) const {
        std::vector<typename Pipe<S>::Stage> own;
        for (std::size_t stage = begin[me()]; stage < begin[me() + 1]; ++stage)
            own.push_back([this, &leaves, stage, before](const V& x, int k) {
                if (before) before(stage, k);
                return forward(stage, leaves[stage], x);
            });
        return Pipe<S>(world(), own, {.schedule = schedule});
    }
    typename Pipe<S>::Result run(Pipe<S>& pipe) const {
        return pipe.run(
            micro_batches(), [this](int k) { return inputs[static_cast<std::size_t>(k)]; },
            [this](const V& y, int k) { return loss(y, k); });
    }
};

std::uint64_t passed_by_all() {
    std::uint64_t sum = 0;
    for (const std::string& passed :
         world().all_gather("bytes passed", std::to_string(world().sent().posted_bytes)))
        sum += std::stoull(passed);
    return sum;
}

template <class V> bool same_gradients(const std::vector<std::vector<V>>& mine,
                                       const std::vector<std::vector<V>>& theirs, std::size_t from,
                                       std::size_t to) {
    bool same = true;
    for (std::size_t stage = from; stage < to; ++stage)
        for (std::size_t i = 0; i < mine[stage].size(); ++i)
            same = same && same_bits(mine[stage][i].grad(), theirs[stage][i].grad());
    return same;
}

template <class S> void check_run(std::uint64_t seed) {
    Random r(seed);
    const RandomPipe<S> drawn(r);
    const int m = drawn.micro_batches(), stages = static_cast<int>(drawn.layers.size());
    CAPTURE(seed, world().size(), stages, m, to_string(drawn.schedule));
    const auto mine = drawn.leaves(), theirs = drawn.leaves();
    Pipe<S> pipe = drawn.pipe(mine);
    REQUIRE(pipe.stages() == stages);
    const Timetable table = Timetable::of(drawn.schedule, stages, m);
    for (int run = 0; run < 2; ++run) {  // the second run adds to the gradients of the first
        const std::uint64_t before = passed_by_all();
        const auto done = drawn.run(pipe);
        CHECK(passed_by_all() - before == drawn.passed() * sizeof(S));
        CHECK(done.loss == drawn.alone(theirs));
        CHECK(same_gradients(mine, theirs, drawn.begin[me()], drawn.begin[me() + 1]));
        std::map<int, std::vector<Timetable::Step>> steps;
        double now = 0;
        for (const Timetable::Step& step : done.steps) {
            steps[step.stage].push_back(step);
            CHECK(step.begin >= now);  // steps do not overlap
            now = step.end;
        }
        REQUIRE(done.max_live.size() == drawn.begin[me() + 1] - drawn.begin[me()]);
        for (std::size_t stage = drawn.begin[me()]; stage < drawn.begin[me() + 1]; ++stage) {
            const bool gpipe = drawn.schedule == Timetable::Schedule::gpipe;
            const int s = static_cast<int>(stage);
            CHECK(done.max_live[stage - drawn.begin[me()]] == (gpipe ? m : std::min(m, stages - s)));
            CHECK(std::ranges::equal(steps[s], table.stages[stage], [](const auto& a, const auto& b) {
                return a.what == b.what && a.micro == b.micro && a.stage == b.stage;
            }));
        }
    }
}

// Tests that all processes throw an Error if one stage throws, and that the pipe can run again.
template <class S> void check_failure(std::uint64_t seed) {
    Random r(seed);
    const RandomPipe<S> drawn(r);
    CAPTURE(seed, world().size(), to_string(drawn.schedule));
    const auto stage =
        static_cast<std::size_t>(r.whole(0, static_cast<std::int64_t>(drawn.layers.size()) - 1));
    const int k = static_cast<int>(r.whole(0, drawn.micro_batches() - 1));
    const bool back = r.coin();
    bool fails = true;
    const auto mine = drawn.leaves(), theirs = drawn.leaves();
    std::vector<typename Pipe<S>::Stage> own;
    for (std::size_t s = drawn.begin[me()]; s < drawn.begin[me() + 1]; ++s)
        own.push_back([&, s](const Var<Array<S>>& x, int at) -> Var<Array<S>> {
            if (!fails || s != stage || at != k) return drawn.forward(s, mine[s], x);
            const auto fail = [](const auto&...) { throw Error("the disk is full"); };
            if (!back) fail();
            const auto first = [](const Array<S>& y, const Array<S>&) { return y; };
            return custom("broken", first, fail, drawn.forward(s, mine[s], x), parameter(Array<S>({0})));
        });
    Pipe<S> pipe(world(), own, {.schedule = drawn.schedule});
    const std::string error = message_of([&] { drawn.run(pipe); });
    const std::size_t failing = static_cast<std::size_t>(
        std::upper_bound(drawn.begin.begin(), drawn.begin.end(), stage) - drawn.begin.begin() - 1);
    CHECK_THAT(error, contains("the disk is full"));
    if (failing != me())
        CHECK_THAT(error,
                   contains("rank " + std::to_string(failing) + " has failed at run 0 of the pipe, of " +
                            std::to_string(drawn.micro_batches()) + " micro-batches, " +
                            (back ? "backward" : "forward") + " of micro-batch " + std::to_string(k) +
                            " in stage " + std::to_string(stage) + ": "));
    fails = false;
    for (const auto& leaves : mine)
        for (const auto& leaf : leaves) leaf.zero_grad();
    CHECK(drawn.run(pipe).loss == drawn.alone(theirs));
    CHECK(same_gradients(mine, theirs, drawn.begin[me()], drawn.begin[me() + 1]));
}

Array<float> any(const Shape& shape, int seed) {
    return uniform<float>(shape, -1, 1, {.seed = static_cast<std::uint64_t>(seed), .stream = 0}).value();
}

Tensor square(std::int64_t width, int seed) { return parameter(any({width, width}, seed)); }

// Makes a pipe with one stage per process.
Pipe<float> chain(const Tensor& weight, Pipe<float>::Options options = {}) {
    return Pipe<float>(world(), {[weight](const Tensor& x, int) { return tanh(matmul(x, weight)); }},
                       options);
}

// Calls run(true) on the last process, run(false) elsewhere. All processes must throw equal errors.
template <class F> std::string error_on_all(F run) {
    const std::string error = message_of([&] { run(me() + 1 == ranks()); });
    for (const std::string& other : world().all_gather("the errors", error)) CHECK(other == error);
    return error;
}

}  // namespace

TEST_CASE("Pipe: gradients have the bits of one process; memory and messages follow the timetable") {
    const std::uint64_t seed = common_seed("pipes");
    for (std::uint64_t i = 0; i < 60; ++i) {
        check_run<float>(seed + i);
        check_run<double>(seed + i);
    }
}

TEST_CASE("own_stages: stages are contiguous, each on one process, and evenly distributed") {
    for (int stages = world().size(); stages <= 3 * world().size() + 1; ++stages) {
        std::string own;
        for (const int stage : Pipe<float>::own_stages(world(), stages)) own += std::to_string(stage) + " ";
        std::string all, expected;
        std::size_t fewest = 1000, most = 0;
        for (const std::string& one : world().all_gather("own stages", own)) {
            all += one;
            const auto count = static_cast<std::size_t>(std::ranges::count(one, ' '));
            fewest = std::min(fewest, count);
            most = std::max(most, count);
        }
        for (int stage = 0; stage < stages; ++stage) expected += std::to_string(stage) + " ";
        CHECK(all == expected);
        CHECK(most - fewest <= 1);
    }
}

TEST_CASE("Pipe: an error in a stage is thrown on all processes, and the next run is right") {
    const std::uint64_t seed = common_seed("failing pipes");
    for (std::uint64_t i = 0; i < 60; ++i) check_failure<float>(seed + i);
}

TEST_CASE("Timetable::Schedule: 1F1B holds p - s micro-batches in memory where GPipe holds all") {
    constexpr int m = 12;
    constexpr std::int64_t items = 256, width = 16;
    const std::size_t array = items * width * sizeof(float);
    const Tensor weight = square(width, 1);
    std::map<Timetable::Schedule, std::size_t> peak;
    for (const Timetable::Schedule schedule : both) {
        Pipe<float> pipe = chain(weight, {.schedule = schedule});
        const std::size_t before = memory::in_use();
        memory::reset_peak();
        pipe.run(
            m,
            [](int k) {
                return any({items, width}, k);
            },
            [](const Tensor& y, int) { return sum(y); });
        peak[schedule] = memory::peak() - before;
        CHECK(memory::in_use() - before <= array);  // only the weight's gradient remains
    }
    // Memory contains the input and the result of each micro-batch in flight, and a few temporary arrays.
    const std::size_t kept = std::min<std::size_t>(m, ranks() - me());
    CAPTURE(peak[both[0]] / array, peak[both[1]] / array, kept);
    CHECK(peak[both[0]] >= 2 * m * array);
    CHECK(peak[both[1]] <= (2 * kept + 6) * array);
}

TEST_CASE("Pipe: with a window the update is that of one process") {
    constexpr int m = 6;
    const auto input = [](int k) { return any({4, 3}, k); };
    std::vector<Tensor> weights, all;
    for (int s = 0; s < world().size(); ++s) {
        weights.push_back(square(3, s));
        all.push_back(square(3, s));
    }
    Adam<float> adam({weights[me()]}), alone(all);
    Window<float> window(adam), whole(alone);
    Pipe<float> pipe = chain(weights[me()]);
    CHECK_THROWS_AS(pipe.run(
                        m, [&](int k) { return k == 3 ? throw Error("the disk is full") : input(k); },
                        [](const Tensor& y, int) { return sum(y * y); }),
                    Error);
    window.discard();  // gradients of micro-batches 0 to 2
    for (int update = 0; update < 3; ++update) {
        pipe.run(m, input, [](const Tensor& y, int) { return sum(y * y); });
        window.after_backward(4 * m);
        CHECK(window.finish().stepped);
        for (int k = 0; k < m; ++k) {
            Tensor x = constant(input(k));
            for (const Tensor& weight : all) x = tanh(matmul(x, weight));
            sum(x * x).backward();
        }
        whole.after_backward(4 * m);
        whole.finish();
        CHECK(same_bits(weights[me()].value(), all[me()].value()));
    }
}

TEST_CASE("Pipe: different pipes, or different numbers of micro-batches, throw an Error on all processes") {
    const auto stage = [](const Tensor& x, int) { return x; };
    const auto make = [&](int own, Timetable::Schedule schedule = Timetable::Schedule::gpipe) {
        return Pipe<float>(world(), std::vector<Pipe<float>::Stage>(static_cast<std::size_t>(own), stage),
                           {.schedule = schedule});
    };
    CHECK(error_on_all([&](bool last) { make(last ? 0 : 1); }) ==
          "[pipe] " + last_rank() + " has no stage; give each of " + std::to_string(ranks()) +
              " processes at least one");
    const Tensor weight = square(2, 1);
    Pipe<float> pipe = chain(weight);
    const auto run = [&](int m, std::int64_t columns = 2) {
        pipe.run(
            m,
            [&](int k) {
                return Array<float>::full({3, k == 1 ? columns : 2}, 1);
            },
            [](const Tensor& y, int) { return sum(y); });
    };
    CHECK(error_on_all([&](bool) { run(0); }) == "[pipe] 0 micro-batches; pass at least 1");
    const std::string shapes = message_of([&] { run(3, 5); });
    CHECK_THAT(shapes, contains("(3, 5)"));
    if (me() > 0)
        CHECK_THAT(shapes, contains("rank 0 has failed at run 1 of the pipe, of 3 micro-batches, forward of "
                                    "micro-batch 1 in stage 0: [matmul] "));
    if (ranks() > 1) {
        const bool last = me() + 1 == ranks();
        CHECK_THAT(
            message_of([&] {
                make(1, last ? Timetable::Schedule::gpipe : Timetable::Schedule::one_forward_one_backward);
            }),
            contains("rank 0 calls the construction of a Pipe<float> with the schedule 1F1B, and " +
                     last_rank() + " calls the construction of a Pipe<float> with the schedule GPipe"));
        CHECK_THAT(message_of([&] { run(last ? 4 : 3); }),
                   contains("rank 0 calls run 2 of the pipe, of 3 micro-batches, and " + last_rank() +
                            " calls run 2 of the pipe, of 4 micro-batches"));
        CHECK_THAT(
            message_of([&] {
                Pipe<float> constants(world(), {[&](const Tensor&, int) {
                                          return matmul(constant(Array<float>::full({2, 2}, 1)), weight);
                                      }});
                constants.run(
                    2, [&](int) { return Array<float>({1}); }, [](const Tensor& y, int) { return sum(y); });
            }),
            contains("[pipe] stage " + std::to_string(ranks() - 1) +
                     ", micro-batch 0: no gradient has reached the input; return a value that depends on the "
                     "input"));
        CHECK_THAT(message_of([&] { last ? void(world().all_gather("another call")) : run(2); }),
                   contains(last_rank() + " calls another call"));
    }
    Pipe<float> one = chain(weight), another = chain(weight);
    if (ranks() > 1)
        CHECK_THAT(error_on_all([&](bool last) {
                       (last ? another : one)
                           .run(
                               2,
                               [](int) {
                                   return Array<float>::full({3, 2}, 1);
                               },
                               [](const Tensor& y, int) { return sum(y); });
                   }),
                   contains("[pipe] run 0 of the pipe, of 2 micro-batches: rank 0 runs pipe ") &&
                       contains(", and " + last_rank() + " runs pipe "));
    run(2);  // the pipe continues
}

TEST_CASE("Pipe: arrays from another process are put on the stage's device") {
    setenv("TALLY_GPU_MODULE", "simulated", 1);
    const Device device = (me() + ranks()) % 2 == 1 ? Device::cuda : Device::cpu;
    const auto input = [](int k) { return any({4, 3}, k); };
    std::vector<Tensor> all;
    for (int s = 0; s < world().size(); ++s) all.push_back(square(3, s));
    const Tensor weight = parameter(all[me()].value().to(device));
    Pipe<float> pipe = chain(weight, {.device = device});
    pipe.run(
        5, [&](int k) { return input(k).to(device); }, [](const Tensor& y, int) { return sum(y * y); });
    for (int k = 0; k < 5; ++k) {
        Tensor x = constant(input(k));
        for (const Tensor& each : all) x = tanh(matmul(x, each));
        sum(x * x).backward();
    }
    CHECK(weight.grad().device() == device);
    CHECK(same_bits(weight.grad(), all[me()].grad()));
}

TEST_CASE("Pipe: if an allocation fails on one process, all throw an Error and continue") {
    const Tensor weight = square(3, 1);
    Pipe<float> pipe = chain(weight);
    int failed_runs = 0;
    for (std::uint64_t nth = 1; nth < 40; nth += 3) {
        if (me() + 1 == ranks()) memory::detail::fail_allocation(nth);
        bool ran = false;
        const std::string error = message_of([&] {
            pipe.run(
                4,
                [](int) {
                    return Array<float>::full({2, 3}, 1);
                },
                [](const Tensor& y, int) { return sum(y); });
            ran = true;
        });
        memory::detail::fail_allocation(0);
        const auto all = world().all_gather("whether it ran", ran ? "yes" : "no");
        CHECK(std::count(all.begin(), all.end(), all[0]) == static_cast<std::ptrdiff_t>(ranks()));
        failed_runs += ran ? 0 : 1;
    }
    CHECK(failed_runs > 0);
}

}  // namespace tally::test
