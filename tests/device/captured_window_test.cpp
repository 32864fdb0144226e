// A captured window: replays have the bits of ordinary windows, whatever is decided anew for each; nobody
// else's memory is touched; what a graph cannot hold is refused in words.
#include "tally/train/captured_window.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "memory/memory_helpers.hpp"
#include "tally/autograd/step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/checkpoint/block.hpp"
#include "tally/train/image_layers.hpp"
#include "tally/train/layers.hpp"

namespace tally::test {

namespace {

constexpr float nan_of = std::numeric_limits<float>::quiet_NaN();

// A classifier with dropout in a window of unequal micro-batches; its inputs differ from update to update.
template <class S> class Trained {
public:
    static constexpr std::int64_t items = 9, in = 5, classes = 4;

    Trained(std::uint64_t number, WindowOptions<S> options, int optimizer_kind)
        : seed(number),
          model(Linear<S>(in, 13, {number, 0}), Tanh<S>(), Dropout<S>(0.4, 3),
                Linear<S>(13, classes, {number, 1})),
          x(Array<S>::zeros({items, in}, Device::cuda)),
          labels({items}, std::vector<std::int32_t>(items, 0), Device::cuda) {
        to(model, Device::cuda);
        optimizer = made(optimizer_kind);
        average.emplace(parameters(model), AverageOptions{.decay = 0.9, .bias_correction = number % 2 == 0});
        options.average = &*average;
        options.seed = number;
        window.emplace(*optimizer, options);
        captured.emplace(*window, [this](Window<S>& w) { add(w); });
    }

    // One update, replayed or not; says how it went, with all bits.
    std::string update(bool replayed, std::int64_t number, bool spoiled = false) {
        std::vector<S> numbers(items * in);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            numbers[i] = random::normal<S>(seed, 7, static_cast<std::uint64_t>(number) * 1000 + i);
        if (spoiled) numbers[3] = static_cast<S>(nan_of);
        std::vector<std::int32_t> classes_of(items);
        for (std::size_t i = 0; i < classes_of.size(); ++i)
            classes_of[i] = static_cast<std::int32_t>(
                random::bits(seed, 8, static_cast<std::uint64_t>(number) * 100 + i) % classes);
        refill(x, Array<S>({items, in}, numbers));
        refill(labels, Array<std::int32_t>({items}, classes_of));
        std::string said;
        try {
            Finished<S> done;
            if (replayed) {
                done = captured->replay();
            } else {
                add(*window);
                done = window->finish();
            }
            said = std::to_string(done.stepped) + " " + std::to_string(done.micro_batches) + " " +
                   std::to_string(done.dropped) + " " + std::to_string(done.count);
            if (!spoiled) said += " loss " + exact(done.loss());
            if (!spoiled && done.norm) said += " norm " + exact(*done.norm);
        } catch (const Error& error) {
            said = std::string(error.what()).find("infinite or NaN") != std::string::npos ? "raised"
                                                                                          : error.what();
            if (!replayed) window->discard();
        }
        return said + " rate " + exact(optimizer->learning_rate()) + " " + std::to_string(window->updates());
    }

    std::vector<S> numbers() const {
        std::vector<S> all;
        const auto append = [&](const Array<S>& array) {
            for (S number : array.to_vector()) all.push_back(number);
        };
        TrainingState state;
        window->save(state, "w");
        for (const auto& [name, entry] : state.entries())
            if (const auto* array = std::get_if<Array<S>>(&entry)) append(*array);
        return all;
    }

    void add(Window<S>& w) {
        if (before) before();
        for (const auto& [from, to] : {std::pair(0, 4), std::pair(4, 5), std::pair(5, 9)}) {
            Var<Array<S>> logits = model(x.leading(from, to), w.pass(to - from));
            if (stash) kept = logits.value();
            w.add(cross_entropy(std::move(logits), labels.leading(from, to)), {.weight = weight});
        }
    }

    std::uint64_t seed;
    Sequential<S> model;
    Array<S> x;
    Array<std::int32_t> labels;
    std::unique_ptr<Optimizer<S>> optimizer;
    std::optional<MovingAverage<S>> average;
    std::optional<Window<S>> window;
    std::optional<CapturedWindow<S>> captured;
    double weight = 1;  // of each item
    bool stash = false;
    Array<S> kept;
    std::function<void()> before;

private:
    static std::string exact(double number) {
        char text[40];
        std::snprintf(text, sizeof text, "%a", number);
        return text;
    }
    std::unique_ptr<Optimizer<S>> made(int kind) const {
        auto w = parameters(const_cast<Sequential<S>&>(model));
        const SgdOptions sgd{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
        if (kind == 0) return std::make_unique<Sgd<S>>(w, SgdOptions{.learning_rate = 0.1});
        if (kind == 1) return std::make_unique<Sgd<S>>(w, sgd);
        if (kind == 2) return std::make_unique<Adam<S>>(w, AdamOptions{.learning_rate = 0.01});
        return std::make_unique<AdamW<S>>(w, AdamWOptions{.learning_rate = 0.01, .weight_decay = 0.1});
    }
};

template <class S> bool same_bits(const std::vector<S>& a, const std::vector<S>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(S)) == 0;
}

// Known numbers in as many blocks of each size as a small window may want.
std::vector<Array<float>> bystanders() {
    std::vector<Array<float>> all;
    for (std::int64_t size = 1; size <= 256; size += 15)
        for (int i = 0; i < 12; ++i)
            all.push_back(Array<float>::full({size}, static_cast<float>(size), Device::cuda));
    return all;
}

bool unharmed(const std::vector<Array<float>>& all) {
    return std::all_of(all.begin(), all.end(), [](const Array<float>& each) {
        return each.to_vector() == std::vector<float>(each.size(), static_cast<float>(each.size()));
    });
}

template <class S> void until_captured(Trained<S>& t, std::int64_t& number) {
    for (int i = 0; i < 5 && !t.captured->captured(); ++i) t.update(true, number++);
    REQUIRE(t.captured->captured());
}

template <class S> WindowOptions<S> plain_options() {
    return {.micro_batches = 3, .total = Trained<S>::items};
}

}  // namespace

TEMPLATE_TEST_CASE("Law: replays have the bits of ordinary windows", "", float, double) {
    using S = TestType;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random r(seed);
        WindowOptions<S> options = plain_options<S>();
        if (r.whole(0, 3) == 0) {
            options.total = 0;
            options.reduction = Reduction::sum;
        }
        if (r.coin()) options.max_norm = r.coin() ? 0.05 : 1e6;
        if (r.whole(0, 2) == 0) options.max_value = 0.01;
        if (r.coin()) options.schedule = Schedule::warm_up(4, Schedule::cosine(0.05, 9));
        if (r.coin()) options.non_finite = NonFinite::drop_window;
        const double weight = r.coin() ? 1 : 0.42;  // 9 times that misses the total by a rounding
        options.total *= weight;
        const int kind = static_cast<int>(r.whole(0, 3));
        const std::int64_t spoiled = r.whole(0, 12);  // of the nine updates
        INFO("seed " << seed << ", weight " << weight << ", optimizer " << kind << ", NaN at update "
                     << spoiled);
        Trained<S> plain(seed, options, kind), replayed(seed, options, kind);
        plain.weight = replayed.weight = weight;
        for (std::int64_t number = 0; number < 9; ++number) {
            INFO("update " << number);
            const std::string want = plain.update(false, number, number == spoiled);
            REQUIRE(replayed.update(true, number, number == spoiled) == want);
            REQUIRE(same_bits(replayed.numbers(), plain.numbers()));
        }
        REQUIRE(replayed.captured->captured());
    }
}

TEST_CASE("A checkpointed model is captured like any other") {
    Trained<float> plain(9, plain_options<float>(), 2), replayed(9, plain_options<float>(), 2);
    replayed.model.checkpoint({.segments = 2});
    for (std::int64_t number = 0; number < 8; ++number) {
        INFO("update " << number);
        const std::string want = plain.update(false, number);
        REQUIRE(replayed.update(true, number) == want);
        REQUIRE(same_bits(replayed.numbers(), plain.numbers()));
        REQUIRE(detail::verifying);
    }
    REQUIRE(replayed.captured->captured());
}

TEST_CASE("A replay waits once and asks for no memory") {
    Trained<float> t(1, plain_options<float>(), 2);
    std::int64_t number = 0;
    until_captured(t, number);
    const memory::Report before = memory::report(Device::cuda);
    const std::uint64_t waited = waits(Device::cuda);
    for (int i = 0; i < 5; ++i) CHECK(t.captured->replay().stepped);
    CHECK(waits(Device::cuda) - waited == 5);
    const memory::Report after = memory::report(Device::cuda);
    CHECK(after.allocations == before.allocations);
    CHECK(after.in_use == before.in_use);
    CHECK(t.window->updates() == number + 5);
}

TEST_CASE("Nothing is captured before a window has stepped") {
    WindowOptions<float> options = plain_options<float>();
    options.non_finite = NonFinite::drop_window;
    Trained<float> plain(8, options, 2), replayed(8, options, 2);
    for (std::int64_t number = 0; number < 12; ++number) {
        INFO("update " << number);
        const std::string want = plain.update(false, number, number < 6);
        REQUIRE(replayed.update(true, number, number < 6) == want);
        REQUIRE(replayed.captured->captured() <= (number > 6));
    }
    REQUIRE(same_bits(replayed.numbers(), plain.numbers()));
    REQUIRE(replayed.captured->captured());
}

TEST_CASE("Ordinary windows and other rates may come between replays") {
    Trained<double> plain(2, plain_options<double>(), 3), mixed(2, plain_options<double>(), 3);
    for (std::int64_t number = 0; number < 12; ++number) {
        INFO("update " << number);
        if (number == 7) {
            plain.optimizer->set_learning_rate(0.3);
            mixed.optimizer->set_learning_rate(0.3);
        }
        const std::string want = plain.update(false, number);
        REQUIRE(mixed.update(number % 5 != 4, number) == want);
        REQUIRE(same_bits(mixed.numbers(), plain.numbers()));
    }
    CHECK(mixed.captured->captured());
}

TEST_CASE("After replays a state is loaded, whatever rate came before them") {
    for (const bool scheduled : {true, false}) {
        WindowOptions<double> options = plain_options<double>();
        if (scheduled) options.schedule = Schedule::step(0.1, 1, 0.5);
        Trained<double> t(2, options, 2);
        TrainingState early;
        t.window->save(early, "w");
        const std::vector<double> wanted = t.numbers();
        std::int64_t number = 0;
        until_captured(t, number);
        if (!scheduled) t.optimizer->set_learning_rate(0.3);
        t.update(true, number);
        t.window->load(early, "w");
        CHECK(same_bits(t.numbers(), wanted));
    }
}

TEST_CASE("A replay writes to nobody else's memory") {
    Trained<float> plain(3, plain_options<float>(), 2), t(3, plain_options<float>(), 2);
    std::int64_t number = 0;
    const auto both = [&] {
        const std::string want = plain.update(false, number);
        CHECK(t.update(true, number) == want);
        ++number;
    };
    t.stash = true;
    while (!t.captured->captured() && number < 6) both();
    REQUIRE(t.captured->captured());

    const std::vector<Array<float>> others = bystanders();
    both();
    CHECK(unharmed(others));

    SECTION("what its function has kept is nobody's when it is let go of") {
        t.kept = {};
        const std::vector<Array<float>> later = bystanders();
        both();
        CHECK(unharmed(later));
        CHECK(t.captured->captured());
    }
    SECTION("a copy of a parameter stays what it was") {
        const Tensor w = parameters(t.model)[0];
        const Array<float> copy = w.value();
        const std::vector<float> was = copy.to_vector();
        both();
        CHECK(copy.to_vector() == was);
        CHECK(w.value().to_vector() != was);
    }
    for (const bool of_average : {false, true})
        SECTION(of_average ? "so does a saved average" : "and so do saved moments") {
            TrainingState state;
            if (of_average)
                t.average->save(state, "a");
            else
                t.optimizer->save(state, "o");
            std::vector<std::pair<Array<float>, std::vector<float>>> saved;
            for (const auto& [name, entry] : state.entries())
                if (const auto* array = std::get_if<Array<float>>(&entry))
                    saved.emplace_back(*array, array->to_vector());
            REQUIRE(saved.size() == (of_average ? 4 : 8));
            both();
            for (const auto& [array, was] : saved) CHECK(array.to_vector() == was);
        }
    SECTION("a gradient that was given back is not written to") {
        for (const Tensor& w : parameters(t.model)) w.free_grad();
        const std::vector<Array<float>> later = bystanders();
        both();
        CHECK(unharmed(later));
    }
    for (int i = 0; i < 4; ++i) both();
    CHECK(t.captured->captured());
    CHECK(same_bits(t.numbers(), plain.numbers()));
    CHECK(unharmed(others));
}

TEST_CASE("The memory of a captured window goes back with it") {
    const auto in_use = [] { return memory::in_use(Device::cuda); };
    const std::size_t before = in_use();
    {
        Trained<float> t(4, plain_options<float>(), 1);
        const std::size_t without = in_use();
        std::int64_t number = 0;
        until_captured(t, number);
        CHECK(in_use() > without);
    }
    CHECK(in_use() == before);
}

TEST_CASE("A graph recorded before a replay notices it") {
    Trained<float> t(5, plain_options<float>(), 0);
    std::int64_t number = 0;
    until_captured(t, number);
    const Tensor w = parameters(t.model)[0];
    const Tensor y = sum(w * w);
    t.update(true, number);
    CHECK_THROWS_WITH(y.backward(), contains("changed in place between forward and backward"));
    w.zero_grad();
}

TEST_CASE("Where labels count otherwise than announced a replay updates nothing") {
    WindowOptions<float> options = plain_options<float>();
    options.schedule = Schedule::step(0.1, 1, 0.5);
    Trained<float> t(6, options, 1);
    std::int64_t number = 0;
    until_captured(t, number);
    const std::vector<float> was = t.numbers();
    const double rate = t.optimizer->learning_rate();
    const auto with_labels = [&](std::int32_t first, std::int32_t others) {
        std::vector<std::int32_t> all(Trained<float>::items, others);
        all[0] = first;
        refill(t.labels, Array<std::int32_t>({Trained<float>::items}, all));
        return message_of([&] { t.captured->replay(); });
    };
    CHECK_THAT(with_labels(-100, 1), contains("a total of 9 was announced, but 8 came"));
    CHECK_THAT(with_labels(-100, -100), contains("3 micro-batches count 0 together"));
    CHECK_THAT(with_labels(7, 1), contains("[cross_entropy] label 7 in row 0 is not one of the 4 classes"));
    CHECK(t.window->updates() == number);
    CHECK(same_bits(t.numbers(), was));
    CHECK(t.optimizer->learning_rate() == rate);
    CHECK(with_labels(0, 1) == "no error");
    CHECK(t.window->updates() == number + 1);
}

TEST_CASE("What a graph cannot hold is refused in words") {
    const std::size_t in_use = memory::in_use(Device::cuda);
    {
        Trained<float> t(7, plain_options<float>(), 1);
        std::int64_t number = 0;
        // What is said when the window that is captured does this, too.
        const auto said_with = [&](const std::function<void()>& action) {
            t.before = [&] {
                if (capturing(Device::cuda)) action();
            };
            std::string said = "no error";
            for (int i = 0; i < 5 && said == "no error"; ++i) {
                const std::vector<float> was = t.numbers();
                said = message_of([&] { t.captured->replay(); });
                if (said == "no error")
                    ++number;
                else
                    CHECK(same_bits(t.numbers(), was));
            }
            t.before = nullptr;
            CHECK_FALSE(t.captured->captured());
            CHECK_FALSE(capturing(Device::cuda));
            CHECK(t.window->updates() == number);
            return said;
        };
        const Tensor w = parameters(t.model)[0], term = sum(w * w);
        CHECK_THAT(said_with([] {
                       (void)Array<float>({2}, {1, 2}, Device::cuda);
                   }),
                   contains("[capture] 8 bytes of the host's memory cannot go to the device"));
        CHECK_THAT(said_with([&] { w.value().to_vector(); }),
                   contains("[capture] reading values makes the host wait"));
        CHECK_THAT(said_with([] { Array<float>::full({12345}, 1, Device::cuda); }),
                   contains("bytes more than the window before it"));
        CHECK_THAT(said_with([&] {
                       dropout(w, 0.5, {1, 2, 3});
                   }),
                   contains("[dropout] in a captured window every replay would drop the same"));
        CHECK_THAT(said_with([&] { t.window->once(term); }), contains("once()"));
        CHECK_THAT(said_with([] { memory::drop_cache(Device::cuda); }),
                   contains("bytes cannot be given back to the device while a window is captured"));
        CHECK_THAT(said_with([] { memory::fail_allocation(9); }), contains("[memory] out of memory on cuda"));
        CHECK_THAT(said_with([&] { throw Error("mine"); }), contains("mine"));
        until_captured(t, number);  // nothing is left of all that

        SECTION("and between replays") {
            t.window->once(sum(w * w));
            CHECK_THROWS_WITH(t.captured->replay(), contains("once()"));
            t.window->discard();
            t.add(*t.window);
            CHECK_THROWS_WITH(t.captured->replay(), contains("the window is open, with 3 micro-batches"));
            t.window->discard();
            sum(w * w).backward();
            CHECK_THROWS_WITH(t.captured->replay(), contains("a gradient has reached parameter 0"));
            w.zero_grad();
            t.average->swap();
            CHECK_THROWS_WITH(t.captured->replay(), contains("swap() back first"));
            t.average->swap();
            CHECK(t.captured->replay().stepped);
        }
    }
    CHECK(memory::in_use(Device::cuda) == in_use);
}

TEST_CASE("A capture that fails keeps no memory") {
    Trained<float> t(10, plain_options<float>(), 1);
    const Tensor term = sum(parameters(t.model)[0]);
    t.stash = true;
    std::vector<std::size_t> in_use;
    for (int failures = 0; failures < 4;) {
        t.before = [&] {
            if (capturing(Device::cuda)) t.window->once(term);
        };
        if (message_of([&] { t.captured->replay(); }) == "no error") continue;
        ++failures;
        t.kept = {};
        in_use.push_back(memory::in_use(Device::cuda));
    }
    CHECK(in_use[1] == in_use[3]);
}

TEST_CASE("Running statistics and parameters that joined later are refused when a window is captured") {
    const Array<float> x = random_normal<float>({6, 4}, {.seed = 1, .stream = 1}).to(Device::cuda);
    Linear<float> linear(4, 3, {1, 0});
    BatchNorm<float> norm(3);
    to(linear, Device::cuda);
    to(norm, Device::cuda);
    SECTION("batch norm") {
        std::vector<Tensor> w = parameters(linear);
        Sgd<float> sgd(w, {.learning_rate = 0.1});
        Window<float> window(sgd, {.total = 18});
        CapturedWindow<float> captured(
            window, [&](Window<float>& each) { each.add(counted(norm(linear(x), each.pass(6)))); });
        std::string said = "no error";
        for (int i = 0; i < 4 && said == "no error"; ++i) said = message_of([&] { captured.replay(); });
        CHECK_THAT(said, contains("[capture] effects, such as batch norm's running statistics"));
    }
    SECTION("another number of updates") {
        std::vector<Tensor> w = parameters(linear);
        Adam<float> adam(w);
        w[0].backward(detail::ones_like(w[0].value()));
        adam.step();  // the bias does not take part
        adam.zero_grad();
        Window<float> window(adam, {.total = 18});
        CapturedWindow<float> captured(window, [&](Window<float>& each) { each.add(counted(linear(x))); });
        std::string said = "no error";
        for (int i = 0; i < 4 && said == "no error"; ++i) said = message_of([&] { captured.replay(); });
        CHECK_THAT(said, contains("[capture] the parameters of Adam have had different numbers of updates"));
    }
}

}  // namespace tally::test
