// Tests that the split of a batch, the number of threads and the use of checkpoints change no bit of
// gradients and weights. The last tests show the cases in which bits change, and a remedy for each case.
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bits/one_training.hpp"
#include "catch.hpp"
#include "law_nets.hpp"

namespace tally::test {

namespace {

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Splits a batch at random, into single items, equal parts with a remainder, or arbitrary parts.
std::vector<std::int64_t> cut(Random& random, std::int64_t items) {
    std::vector<std::int64_t> sizes;
    const std::int64_t way = random.whole(0, 3), equal = way == 0 ? 1 : random.whole(1, items);
    for (std::int64_t left = items; left > 0; left -= sizes.back())
        sizes.push_back(std::min(left, way < 3 ? equal : random.whole(1, left)));
    return sizes;
}

template <class S>
std::unique_ptr<Optimizer<S>> optimizer(std::int64_t which, std::vector<Var<Array<S>>> of) {
    switch (which) {
        case 0:
            return std::make_unique<Sgd<S>>(std::move(of), Sgd<double>::Options{.learning_rate = 0.01});
        case 1:
            return std::make_unique<Sgd<S>>(
                std::move(of),
                Sgd<double>::Options{.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 0.01});
        case 2:
            return std::make_unique<Sgd<S>>(
                std::move(of),
                Sgd<double>::Options{.learning_rate = 0.01, .momentum = 0.8, .nesterov = true});
        case 3:
            return std::make_unique<Adam<S>>(std::move(of), Adam<double>::Options{.learning_rate = 0.01});
        default:
            return std::make_unique<AdamW<S>>(std::move(of));
    }
}

// Describes one way to run the training. All ways must give gradients and weights with the same bits.
struct Way {
    std::vector<std::vector<std::int64_t>> cuts;  // sizes of the parts of each update
    int threads = 1;
    std::size_t segments = 0;  // 0 means no checkpoints
};

template <class S> struct Trained {
    std::vector<Array<S>> gradients, weights;  // one array for each parameter after each update
};

struct Case {
    std::uint64_t seed;
    std::vector<std::size_t> wanted;  // indices of layers that the net must contain
    std::int64_t which;               // index of the optimizer
    double total;                     // announced total of the window, or 0
    bool clips;
    std::int64_t least_items = 0;
};

template <class S> Trained<S> train(const Case& of, const Way& way) {
    Net<S> net(of.seed, of.wanted, of.least_items);
    if (way.segments) net.body.checkpoint({.segments = std::min(way.segments, net.body.size())});
    const auto steps = optimizer<S>(of.which, net.parameters);
    typename Window<S>::Options options{.total = of.total, .seed = of.seed};
    if (of.clips) options.max_norm = 0.5;
    Window<S> window(*steps, options);
    Trained<S> done;
    set_threads(way.threads);
    for (const auto& sizes : way.cuts) {
        std::int64_t from = 0;
        for (const std::int64_t size : sizes) {
            window.add(net.loss(from, from + size, window.begin_micro_batch(size)));
            from += size;
        }
        for (const auto& p : net.parameters) done.gradients.push_back(p.grad().clone());
        window.finish();
        for (const auto& p : net.parameters) done.weights.push_back(p.value().clone());
    }
    set_threads(1);
    return done;
}

template <class S>
std::string difference(const char* of, const std::vector<Array<S>>& a, const std::vector<Array<S>>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!same_bits(a[i], b[i]))
            return std::string(of) + " " + std::to_string(i) + " " + to_string(a[i].shape());
    return "";
}

std::string describe(const Way& way) {
    std::string text =
        std::to_string(way.threads) + " threads, " + std::to_string(way.segments) + " segments, cut ";
    for (const auto& sizes : way.cuts) {
        for (const std::int64_t size : sizes) text += std::to_string(size) + " ";
        text += "| ";
    }
    return text;
}

// Collects the names of all operations that run while this object observes.
struct Operations : Observer {
    std::set<std::string> names;
    void on_forward(const ForwardEvent& operation) override { names.insert(operation.op); }
};

// Counts the cases that contain each layer, each operation, and each way of using a parameter (law_nets.cpp).
struct Seen {
    std::map<std::string, int> kinds, operations;
};

template <class S> void check_case(Case of, Seen& seen, std::optional<std::int64_t> part = {}) {
    Net<S> net(of.seed, of.wanted, of.least_items);
    for (const std::string& name : std::set<std::string>(net.used.begin(), net.used.end()))
        ++seen.kinds[name];
    Operations operations;
    double counted = 0;
    {
        const Observer::Scope on(operations);
        ForwardPass pass{.training = true};
        counted = net.loss(0, net.items, pass).count.item();
    }
    for (const std::string& name : operations.names) ++seen.operations[name];
    Random random(of.seed ^ 0x9e3779b97f4a7c15);
    of.which = random.whole(0, 4);
    of.clips = random.whole(0, 3) == 0;
    if (random.coin()) of.total = counted;
    const auto updates = static_cast<std::size_t>(net.large ? 1 : random.whole(1, 3));
    const Way whole{std::vector<std::vector<std::int64_t>>(updates, {net.items}), 1, 0};
    Way other{{}, static_cast<int>(random.whole(1, 4)), static_cast<std::size_t>(random.whole(0, 3))};
    for (std::size_t i = 0; i < updates; ++i) other.cuts.push_back(cut(random, net.items));
    if (part) other.cuts[0].assign(static_cast<std::size_t>(net.items / *part), *part);
    const Trained<S> want = train<S>(of, whole), got = train<S>(of, other);
    std::string layers;
    for (const std::string& name : net.used) layers += name + ", ";
    INFO("seed " << of.seed << (sizeof(S) == 4 ? ", float: " : ", double: ") << layers << net.items
                 << " items, optimizer " << of.which << ", total " << of.total << ", " << describe(other));
    REQUIRE(difference("gradient", want.gradients, got.gradients) == "");
    REQUIRE(difference("weight", want.weights, got.weights) == "");
}

// Reads a table in docs/architecture.md, and returns the operations in the rows whose second column begins
// with `promise`.
std::set<std::string> operations_in_table(const std::string& promise) {
    std::ifstream file(TALLY_SOURCE_DIR "/docs/architecture.md");
    std::set<std::string> names;
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("| operations |")) inside = true;
        if (line.empty()) inside = false;
        const std::size_t second = line.find(" | ");
        if (!inside || second == std::string::npos || line.compare(second + 3, promise.size(), promise) != 0)
            continue;
        for (std::size_t at = 0; (at = line.find('`', at)) < second;) {
            const std::size_t end = line.find('`', at + 1);
            names.insert(line.substr(at + 1, end - at - 1));
            at = end + 1;
        }
    }
    return names;
}

std::size_t kind_named(const std::string& name) {
    const auto& all = kinds<float>();
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].name == name) return i;
    throw Error("no kind is called " + name);
}

}  // namespace

// TALLY_LAW_CASES sets the number of cases, and TALLY_LAW_SEED sets the first seed. With both variables you
// can repeat a failed case.
TEST_CASE("Law: the gradients and weights of a batch in parts have the bits of the whole batch", "[alone]") {
#ifdef NDEBUG
    constexpr std::uint64_t cases_by_default = 10000;
#else
    constexpr std::uint64_t cases_by_default = 100;  // fewer cases with assertions and under the sanitizers
#endif
    const std::uint64_t cases = environment_number("TALLY_LAW_CASES", cases_by_default),
                        first = environment_number("TALLY_LAW_SEED", 1);
    WARN(cases << " cases from seed " << first);
    Seen seen;
    const std::size_t all = kinds<float>().size();
    for (std::uint64_t i = 0; i < cases; ++i) {
        const std::vector<std::size_t> wanted{static_cast<std::size_t>(i) % all,
                                              static_cast<std::size_t>(i * 7 + i / all + 1) % all,
                                              static_cast<std::size_t>(i * 11 + 2 * (i / all) + 5) % all};
        if (i % 3 == 2)
            check_case<double>({first + i, wanted, 0, 0, false}, seen);
        else
            check_case<float>({first + i, wanted, 0, 0, false}, seen);
    }
    if (cases < 2000) return;
    for (const Kind<float>& kind : kinds<float>()) {
        INFO(kind.name << " is in " << seen.kinds[kind.name] << " of " << cases << " cases");
        CHECK(seen.kinds[kind.name] >= 100);
    }
    for (const char* name : {"Embedding", "Flatten", "an output of width 1", "mse", "cross_entropy",
                             "cross_entropy, smoothed, some ignored", "binary_cross_entropy"})
        CHECK(seen.kinds[name] >= 100);
    const std::set<std::string> promised = operations_in_table("same bits");
    for (const auto& [name, times] : seen.operations) {
        INFO(name << " is in " << times << " of " << cases << " cases");
        CHECK(promised.count(name) == 1);
    }
    for (const std::string& name : promised) {
        INFO(name << " is in " << seen.operations[name] << " of " << cases << " cases");
        CHECK(seen.operations[name] >= 100);
    }
}

TEST_CASE("Law: single items have the bits of the whole batch when a row has one element") {
    Seen seen;
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
        for (const char* name : {"Linear of width 1", "a scalar gain", "Conv2d", "minimum with a scalar"}) {
            check_case<float>({seed, {kind_named(name)}, 0, 0, false, 70}, seen, 1);
            check_case<double>({seed, {kind_named(name)}, 0, 0, false, 70}, seen, 1);
        }
}

TEST_CASE("one_training: the weights have the recorded bits") {
    CHECK(one_training<float>() == weights_in_float);
    CHECK(one_training<double>() == weights_in_double);
}

namespace {

// Computes the sum of f over all rows, `part` rows at a time. Returns the gradients of the sum.
template <class F> std::vector<Array<float>> summed(std::int64_t part, std::vector<Array<float>> at, F f) {
    Random random(5);
    const Array<float> x = random.array<float>({48, 5}), dy = random.array<float>({48, 5});
    std::vector<Tensor> w;
    for (const Array<float>& value : at) w.push_back(parameter(value.clone()));
    for (std::int64_t from = 0; from < 48; from += part)
        sum(f(constant(x.slice_rows(from, from + part)), w) * constant(dy.slice_rows(from, from + part)))
            .backward();
    std::vector<Array<float>> gradients;
    for (const Tensor& each : w) gradients.push_back(each.grad().clone());
    return gradients;
}

template <class F> int parts_that_differ(const std::vector<Array<float>>& at, F f) {
    int differ = 0;
    for (const std::int64_t part : {1, 2, 3, 4, 6, 8, 12, 16, 24})
        differ += difference("", summed(48, at, f), summed(part, at, f)) != "";
    return differ;
}

}  // namespace

// These tests show each exception that docs/architecture.md lists, and a remedy for the exception.
TEST_CASE("Law where it ends: several operations read one parameter") {
    Random random(6);
    const Array<float> at = random.array<float>({5});
    CHECK(parts_that_differ({at}, [](const Tensor& x, const auto& w) { return x * w[0] + w[0]; }) > 0);
    const auto repaired = [](const Tensor& x, const auto& w) { return x * w[0] + w[1]; };
    CHECK(parts_that_differ({at, at}, repaired) == 0);
    // The gradient of a shared parameter is the sum of two gradients, except for rounding.
    const auto separate = summed(4, {at, at}, repaired);
    const auto together = summed(48, {at}, [](const Tensor& x, const auto& w) { return x * w[0] + w[0]; });
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(std::abs(separate[0].data()[i] + separate[1].data()[i] - together[0].data()[i]) < 1e-5f);
}

TEST_CASE("Law where it ends: a parameter is read through a view") {
    Random random(7);
    const Array<float> square = random.array<float>({5, 5}), row = random.array<float>({5}),
                       wide = random.array<float>({5, 10});
    CHECK(parts_that_differ({square}, [](const Tensor& x, const auto& w) {
              return matmul(x, permute(w[0], {1, 0}));
          }) > 0);
    CHECK(parts_that_differ({square}, [](const Tensor& x, const auto& w) {
              return matmul(x, w[0], {.transpose_b = true});
          }) == 0);
    CHECK(parts_that_differ({row}, [](const Tensor& x, const auto& w) {
              return x * reshape(w[0], detail::Axes{1, 5});
          }) > 0);
    CHECK(parts_that_differ({row}, [](const Tensor& x, const auto& w) { return x * w[0]; }) == 0);
    CHECK(parts_that_differ(
              {wide}, [](const Tensor& x, const auto& w) { return matmul(x, slice(w[0], 1, 0, 5)); }) > 0);
    CHECK(parts_that_differ(
              {wide}, [](const Tensor& x, const auto& w) { return slice(matmul(x, w[0]), 1, 0, 5); }) == 0);
}

}  // namespace tally::test
