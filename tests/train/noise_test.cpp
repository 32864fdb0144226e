// Tests that the noise estimates of random windows equal the estimates of the formula. If the variance of the
// gradients is known, the estimates have the right mean and variance. Invalid calls throw an Error.
#include "tally/train/noise.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "io/file_testing.hpp"
#include "tally/base/random.hpp"
#include "tally/io/training_state.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

template <class S> using Leaves = std::vector<Var<Array<S>>>;
using Numbers = std::vector<double>;

// Generates micro-batches for a loss that is linear in its parameters. The gradients are random numbers.
template <class S> struct Drawn {
    struct Micro {
        std::vector<Array<S>> gradients;  // gradients of the loss's sum, one for each parameter
        double count, weight;
        bool dropped = false;
    };
    std::vector<Array<S>> values;
    std::vector<Micro> micros;
    typename Window<S>::Options options{.noise = true};
    bool penalty;

    explicit Drawn(Random& r) : penalty(r.whole(0, 3) == 0) {
        values.push_back(r.array<S>({r.whole(1, 40)}));
        for (std::int64_t more = r.whole(0, 2); more-- > 0;) values.push_back(r.array<S>(r.shape(2, 5)));
        if (r.whole(0, 3) == 0) options.weigh = Weigh::micro_batches;
        if (r.whole(0, 3) == 0) options.sum = Sum::exact;
        if (r.whole(0, 3) == 0) options.non_finite = NonFinite::drop_micro;
        if (r.coin()) options.max_norm = r.between(0.1, 3);
        const bool weighted = r.coin();
        double total = 0;
        for (std::int64_t n = r.whole(1, 6); n-- > 0;) {
            micros.push_back({{}, static_cast<double>(r.whole(0, 6)), weighted ? r.between(0.1, 3) : 1});
            Micro& micro = micros.back();
            if (n == 0 && total == 0) micro.count = 2;  // at least one micro-batch counts
            for (const Array<S>& value : values)
                micro.gradients.push_back(micro.count > 0 ? r.array<S>(value.shape())
                                                          : Array<S>::zeros(value.shape(), here()));
            total += share(micro);
        }
        if (options.non_finite == NonFinite::drop_micro && micros.size() > 1) drop(r);
        if (r.whole(0, 2) == 0)
            options.total = total;
        else if (r.whole(0, 2) == 0)
            options.reduction = Reduction::sum;
    }
    void drop(Random& r) {
        Micro& lost = micros[static_cast<std::size_t>(r.whole(0, std::ssize(micros) - 1))];
        double others = 0;
        for (const Micro& micro : micros) others += &micro == &lost ? 0 : micro.count;
        if (others == 0) return;
        lost.dropped = true;
        lost.gradients[0].writable()[0] = std::numeric_limits<S>::quiet_NaN();
    }
    double share(const Micro& micro) const {
        if (options.weigh == Weigh::counted) return micro.weight * micro.count;
        return micro.count > 0 ? micro.weight : 0;
    }
    double each(const Micro& micro) const {
        return options.weigh == Weigh::counted ? micro.weight : micro.weight / micro.count;
    }
    Loss<Array<S>> loss(const Leaves<S>& leaves, const Micro& micro) const {
        Var<Array<S>> all = sum(leaves[0] * constant(micro.gradients[0]));
        for (std::size_t i = 1; i < leaves.size(); ++i)
            all = all + sum(leaves[i] * constant(micro.gradients[i]));
        return {all, constant(Array<S>::full({}, static_cast<S>(micro.count), here()))};
    }
    Leaves<S> leaves() const {
        Leaves<S> all;
        for (const Array<S>& value : values) all.push_back(parameter(value.clone()));
        return all;
    }
};

double squared(const Numbers& x) {
    double sum = 0;
    for (const double each : x) sum += each * each;
    return sum;
}

// Stores the expected estimates. Each estimate is the difference of two terms, which are at most `size`.
struct ByHand {
    double trace = 0, square = 0, first_share = 0, share = 0, size = 0;
    int counted = 0;
};
template <class S> ByHand by_hand(const Drawn<S>& drawn) {
    Numbers sum, first;
    double shares = 0, squares = 0, sizes = 0;
    ByHand found;
    for (const auto& micro : drawn.micros) {
        if (micro.dropped || micro.count == 0) continue;
        Numbers mine;
        for (const Array<S>& gradient : micro.gradients)
            for (const S each : gradient.to_vector()) mine.push_back(double(each) * drawn.each(micro));
        sum.resize(mine.size());
        for (std::size_t i = 0; i < mine.size(); ++i) sum[i] += mine[i];
        shares += drawn.share(micro);
        squares += drawn.share(micro) * drawn.each(micro);
        sizes += std::sqrt(squared(mine));
        if (found.counted++ > 0) continue;
        found.first_share = squares / (shares * shares);
        first = mine;
        for (double& each : first) each /= shares;
    }
    for (double& each : sum) each /= shares;
    found.share = squares / (shares * shares);
    const double difference = found.first_share - found.share;
    found.trace = (squared(first) - squared(sum)) / difference;
    found.square = (found.first_share * squared(sum) - found.share * squared(first)) / difference;
    found.size = std::max(squared(first), sizes * sizes / (shares * shares)) / std::abs(difference);
    return found;
}

template <class S> void check_by_hand(std::uint64_t seed) {
    Random r(seed);
    const Drawn<S> drawn(r);
    CAPTURE(seed, sizeof(S), drawn.micros.size(), drawn.options.total);
    const ByHand expected = by_hand(drawn);
    std::vector<std::vector<Array<S>>> weights;
    for (const bool noise : {true, false}) {
        const Leaves<S> leaves = drawn.leaves();
        Sgd<S> sgd(leaves, {.learning_rate = 0.1});
        typename Window<S>::Options options = drawn.options;
        options.noise = noise;
        Window<S> window(sgd, options);
        for (int update = 0; update < 2; ++update) {
            for (const auto& micro : drawn.micros)
                window.add(drawn.loss(leaves, micro), {.weight = micro.weight});
            if (drawn.penalty) window.add_regularizer(sum(leaves[0] * leaves[0]) * 3);
            const auto done = window.finish();
            REQUIRE(done.stepped);
            CHECK(done.noise.windows + done.noise.without == noise);
            if (!noise) continue;
            CHECK(window.noise().windows + window.noise().without == update + 1);
            const double difference = 1 - expected.share / expected.first_share;
            if (expected.counted == 1 || difference < -1e-3) CHECK(done.noise.without == 1);
            if (expected.counted == 1 || difference < 0.01) continue;
            const double bound = expected.size * (sizeof(S) == 4 ? 1e-4 : 1e-12);
            CHECK(std::abs(done.noise.trace() - expected.trace) <= bound);
            CHECK(std::abs(done.noise.square() - expected.square) <= bound);
            CHECK(std::abs(window.noise().trace() - expected.trace) <= bound);
        }
        weights.emplace_back();
        for (const auto& leaf : leaves) weights.back().push_back(leaf.value());
    }
    for (std::size_t i = 0; i < weights[0].size(); ++i) CHECK(same_bits(weights[0][i], weights[1][i]));
}

}  // namespace

TEST_CASE("Window::noise: the estimates solve the two equations, and the weights keep their bits") {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        check_by_hand<float>(seed);
        check_by_hand<double>(seed);
    }
}

TEST_CASE("Window::noise: micro-batches of one and two items give the numbers of the literature's formula") {
    // The first gradient (3, 4) has the squared norm 25, and the mean of 3 gradients has the squared norm 5.
    // So the square is (3 * 5 - 1 * 25) / (3 - 1) = -5, and the trace is (25 - 5) / (1 - 1/3) = 30.
    const Tensor64 w = parameter(Array<double>({2}, {1, 1}).to(here()));
    Sgd<double> sgd({w}, {.learning_rate = 0.1});
    Window<double> window(sgd, {.noise = true});
    const auto items = [&](std::vector<double> x) {
        const auto n = static_cast<std::int64_t>(x.size()) / 2;
        return Loss<Array<double>>{sum(constant(Array<double>({n, 2}, x).to(here())) * w),
                                   constant(Array<double>::full({}, double(n), here()))};
    };
    window.add(items({3, 4}));
    window.add(items({0, 2, 0, 0}));
    window.finish();
    CHECK(std::abs(window.noise().trace() - 30) < 1e-12);
    CHECK(std::abs(window.noise().square() + 5) < 1e-12);
    CHECK_FALSE(window.noise().scale().has_value());

    // The estimates are means over all windows. The first window gives the trace 30 and the square -5, and
    // the other windows give 0 and 4.
    window.add(items({2, 0}));
    window.add(items({2, 0, 2, 0}));
    window.finish();
    CHECK(std::abs(window.noise().trace() - 15) < 1e-12);
    CHECK(std::abs(window.noise().square() + 0.5) < 1e-12);
    CHECK_FALSE(window.noise().scale().has_value());
    for (int more = 0; more < 2; ++more) {
        window.add(items({2, 0}));
        window.add(items({2, 0, 2, 0}));
        window.finish();
    }
    CHECK(window.noise().windows == 4);
    CHECK(std::abs(window.noise().square() - 1.75) < 1e-12);
    CHECK(std::abs(*window.noise().scale() - 7.5 / 1.75) < 1e-12);
}

namespace {

// Describes items whose gradients are d normal random numbers with a known mean and variance.
struct Known {
    std::int64_t d;
    double mean, variance;  // mean and variance of each number
    std::vector<double> sizes;

    double trace() const { return double(d) * variance; }
    double square() const { return double(d) * mean * mean; }
    double items() const {
        double all = 0;
        for (const double size : sizes) all += size;
        return all;
    }
    // Returns the variance of an estimate if all items have equal weights (docs/mathematics.md, 8).
    double variance_of_trace() const {
        const double p = 1 / sizes[0], q = 1 / items();
        return (2 * variance * trace() * (p + q) + 4 * square() * variance) / (p - q);
    }
    double variance_of_square() const {
        const double p = 1 / sizes[0], q = 1 / items();
        return (4 * p * q * q * variance * trace() + 4 * square() * variance * p * q) / (p - q);
    }
};

struct Measured {
    std::vector<double> traces, squares;
    detail::Noise noise;
};
// Estimates the noise of the gradient from many windows, with items as in `known`. The loss is linear in the
// parameter, so the gradient does not depend on the value of the parameter.
Measured measured(const Known& known, std::uint64_t seed, std::int64_t windows) {
    const Tensor64 w = parameter(Array<double>::zeros({known.d}, here()));
    Sgd<double> sgd({w}, {.learning_rate = 0});
    Window<double> window(sgd, {.noise = true});
    Measured found;
    std::uint64_t stream = 0;
    for (std::int64_t i = 0; i < windows; ++i) {
        // The sum of normal random numbers is normal, so the test generates only the sum.
        for (const double size : known.sizes) {
            const Array<double> sum_of_items =
                randn<double>({known.d}, size * known.mean, std::sqrt(size * known.variance),
                              {.seed = seed, .stream = stream++})
                    .value();
            window.add({sum(w * constant(sum_of_items.to(here()))),
                        constant(Array<double>::full({}, size, here()))});
        }
        const auto done = window.finish();
        found.traces.push_back(done.noise.trace());
        found.squares.push_back(done.noise.square());
    }
    found.noise = window.noise();
    return found;
}

double mean_of(const Numbers& x) {
    double sum = 0;
    for (const double each : x) sum += each;
    return sum / double(x.size());
}

Known drawn_noise(Random& r) {
    Known known{r.whole(20, 300), r.between(-1, 1), r.between(0.1, 4), {}};
    for (std::int64_t n = r.whole(2, 5); n-- > 0;) known.sizes.push_back(double(r.whole(1, 40)));
    return known;
}

}  // namespace

// The test checks 80 means, each over at least 100 windows of at least 20 elements. The probability that a
// mean is wrong by more than six standard deviations is about 1e-8.
TEST_CASE("Window::noise: the estimates are not biased when the noise is known") {
    constexpr double allowed = 6;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Random r(seed);
        const Known known = drawn_noise(r);
        const std::int64_t windows = r.whole(100, 300);
        const Measured found = measured(known, seed, windows);
        CAPTURE(seed, known.d, known.mean, known.variance, known.sizes[0], known.items(), windows);
        const double fewer = std::sqrt(double(windows));
        CHECK(std::abs(found.noise.trace() - known.trace()) <=
              allowed * std::sqrt(known.variance_of_trace()) / fewer);
        CHECK(std::abs(found.noise.square() - known.square()) <=
              allowed * std::sqrt(known.variance_of_square()) / fewer);
        CHECK(std::abs(found.noise.trace() - mean_of(found.traces)) <= 1e-12 * known.trace());
    }
}

namespace {

Loss<Array<double>> linear_loss(const Tensor64& w, double x, double count = 1) {
    return {sum(w * x), constant(Array<double>::full({}, count, here()))};
}

struct OneWeight {
    Tensor64 w = parameter(Array<double>({2}, {1.0, 2.0}).to(here()));
    Sgd<double> sgd{{w}, {.learning_rate = 0.1}};
};

}  // namespace

TEST_CASE("Window::noise: windows that permit no estimate throw an Error that says why") {
    OneWeight one;
    {
        Window<double> window(one.sgd, {});
        CHECK_THROWS_WITH(window.noise(),
                          contains("it is not measured; make the window with {.noise = true}"));
    }
    Window<double> window(one.sgd, {.non_finite = NonFinite::drop_window, .noise = true});
    CHECK_THROWS_WITH(window.noise().trace(), contains("[noise] trace: no window has given an estimate yet"));
    window.add(linear_loss(one.w, 2));
    CHECK(window.finish().noise.without == 1);
    CHECK_THROWS_WITH(window.noise().square(), contains("1 has been updated from one micro-batch alone"));
    window.add(linear_loss(one.w, 2, 3));
    window.add(linear_loss(one.w, 0, 0));  // this micro-batch has a count of 0
    CHECK(window.finish().noise.without == 1);
    CHECK_THROWS_WITH(window.noise().scale(), contains("2 have been updated"));
    // A window that makes no update is not part of the estimates.
    window.add(linear_loss(one.w, 2));
    window.add(linear_loss(one.w, std::numeric_limits<double>::quiet_NaN()));
    CHECK_FALSE(window.finish().stepped);
    window.add(linear_loss(one.w, 2));
    window.add(linear_loss(one.w, 2));
    window.discard();
    CHECK(window.noise().windows + window.noise().without == 2);
    // If the first micro-batch has a count of 0, the formula starts with the second micro-batch.
    window.add(linear_loss(one.w, 0, 0));
    window.add(linear_loss(one.w, 3));
    window.add(linear_loss(one.w, 1));
    // The estimated trace is (2 * 9 - 2 * 4) / (1 - 1/2) = 20, and the square is 2 * 4 - 20 / 2 = -2.
    CHECK(window.finish().noise.windows == 1);
    CHECK(std::abs(window.noise().trace() - 20) < 1e-12);
    CHECK(std::abs(window.noise().square() + 2) < 1e-12);
}

TEST_CASE("Window::noise: micro-batches of after_backward() are measured") {
    OneWeight one;
    Window<double> window(one.sgd, {.noise = true});
    linear_loss(one.w, 3).sum.backward();
    window.after_backward(1);
    linear_loss(one.w, 1).sum.backward();
    window.after_backward(1);
    window.finish();
    CHECK(std::abs(window.noise().trace() - 20) < 1e-12);
}

TEST_CASE("Window::noise: losses of dependent items throw an Error") {
    OneWeight one;
    Window<double> window(one.sgd, {.total = 2, .noise = true});
    CHECK_THROWS_WITH(
        add_cached<double>(window, {Items(0, 2)}, {}, [&](const auto&) { return linear_loss(one.w, 1); }),
        contains("[cached] items that are compared with each other are not independent draws"));
    CHECK(window.empty());
    Sequential<double> model(Linear<double>(2, 3, {1, 0}), BatchNorm<double>(3));
    CHECK_THROWS_WITH(add_with_exact_batch_norm<double>(
                          window, model, {Items(0, 2)}, [&](const Items&) { return one.w; },
                          [&](const Tensor64&, const Items&) { return linear_loss(one.w, 1); }),
                      contains("[exact_batch_norm] items that share their statistics"));
    window.add(linear_loss(one.w, 1));
    CHECK_THROWS_WITH(window.backward([] {}), contains("[window] backward: noise() has measured"));
    window.discard();
}

TEST_CASE("Window::save: a loaded window continues the noise estimate") {
    const std::vector<double> gradients{3, 1, -2, 5, 4, 4, 7, -1};
    struct Training : OneWeight {
        explicit Training(bool noise, Sum how)
            : window(sgd, {.micro_batches = 4, .sum = how, .noise = noise}) {}
        void add(double gradient) {
            window.add(linear_loss(w, gradient));
            if (window.full()) window.finish();
        }
        Window<double> window;
    };
    const auto save_and_parse = [](const Training& training) {
        TrainingState state;
        training.window.save(state, "w");
        const std::string file = detail::state_bytes(state);
        return detail::parse_state(std::as_bytes(std::span(file)), "file");
    };
    for (const Sum how : {Sum::running, Sum::exact}) {
        Training whole(true, how);
        for (const double gradient : gradients) whole.add(gradient);
        for (std::size_t cut = 0; cut <= gradients.size(); ++cut) {
            CAPTURE(cut, how == Sum::exact);
            Training before(true, how), after(true, how);
            for (std::size_t i = 0; i < cut; ++i) before.add(gradients[i]);
            after.window.load(save_and_parse(before), "w");
            before.window.discard();
            for (std::size_t i = cut; i < gradients.size(); ++i) after.add(gradients[i]);
            CHECK(after.window.noise().windows == 2);
            CHECK(after.window.noise().traces == whole.window.noise().traces);
            CHECK(after.window.noise().squares == whole.window.noise().squares);
            CHECK(same_bits(after.w.value(), whole.w.value()));
        }
    }

    // A window with the option `noise` may load a state that was saved without the option. If the window did
    // not measure the gradient of its first micro-batch, the window gives no estimate.
    Training whole(false, Sum::running);
    for (const double gradient : gradients) whole.add(gradient);
    for (std::size_t cut = 0; cut <= 4; ++cut) {
        CAPTURE(cut);
        Training without(false, Sum::running), with(true, Sum::running), back(false, Sum::running);
        for (std::size_t i = 0; i < cut; ++i) without.add(gradients[i]);
        with.window.load(save_and_parse(without), "w");
        without.window.discard();
        for (std::size_t i = cut; i < gradients.size(); ++i) with.add(gradients[i]);
        CHECK(with.window.noise().windows == (cut == 0 ? 2 : 1));
        CHECK(with.window.noise().without == (cut == 0 || cut == 4 ? 0 : 1));
        CHECK(same_bits(with.w.value(), whole.w.value()));
        CHECK_NOTHROW(back.window.load(save_and_parse(with), "w"));
    }
}

TEST_CASE("Window::load: a window saved after a NaN gradient can be loaded") {
    const Window<double>::Options options{.non_finite = NonFinite::drop_window, .noise = true};
    OneWeight one, other;
    Window<double> saved(one.sgd, options), loaded(other.sgd, options);
    saved.add(linear_loss(one.w, std::numeric_limits<double>::quiet_NaN()));
    TrainingState state;
    saved.save(state, "w");
    CHECK_NOTHROW(loaded.load(state, "w"));
    loaded.discard();
}

TEST_CASE("Window::load: invalid numbers of saved noise throw an Error and change nothing") {
    OneWeight one;
    Window<double> window(one.sgd, {.noise = true});
    window.add(linear_loss(one.w, 3));
    TrainingState good;
    window.save(good, "w");
    const double nan = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();
    const std::vector<std::pair<std::string, TrainingState::Entry>> invalid{
        {"windows", std::int64_t{-1}},
        {"without", std::int64_t{-1}},
        {"firsts", std::int64_t{1000}},
        {"traces", nan},
        {"squares", infinity},
        {"first_square", -1.0},
        {"first_share", nan},
        {"squared_weights", -1.0},
        {"first_square", std::int64_t{1}}};
    for (const auto& [name, value] : invalid) {
        CAPTURE(name);
        CHECK_THROWS_WITH(window.load(with(good, "w/noise/" + name, value), "w"),
                          contains("w/noise/" + name));
        CHECK(window.micro_batches() == 1);
    }
    CHECK_NOTHROW(window.load(good, "w"));
    window.discard();
}

}  // namespace tally::test
