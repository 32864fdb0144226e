// Tests that a Window with Sum::exact gives the same bits for every order and distribution of micro-batches.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "io/file_testing.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train/exact_batch_norm.hpp"
#include "tally/train/grad_cache.hpp"
#include "train/law_nets.hpp"

namespace tally::test {

namespace {

// Describes a micro-batch, which is a range of items with a weight.
struct Micro {
    std::int64_t from, to;
    double weight;
};

std::vector<Micro> drawn_micro_batches(Random& random, std::int64_t items) {
    std::vector<Micro> all;
    const bool weighted = random.coin();
    for (std::int64_t from = 0; from < items; from = all.back().to)
        all.push_back({from, random.whole(from + 1, std::min(items, from + random.whole(1, 8))),
                       weighted ? random.between(0.1, 3) : 1});
    return all;
}

void shuffle(Random& random, std::vector<Micro>& all) {
    for (std::size_t i = all.size(); i > 1; --i)
        std::swap(all[i - 1],
                  all[static_cast<std::size_t>(random.whole(0, static_cast<std::int64_t>(i) - 1))]);
}

// A Training stores a random net with an optimizer and a window.
template <class S> struct ExactTraining {
    explicit ExactTraining(std::uint64_t seed, typename Window<S>::Options options, std::size_t segments = 0)
        : net(seed, {seed % kinds<S>().size()}),
          adam(net.parameters, Adam<double>::Options{.learning_rate = 0.01}),
          window(adam, options) {
        if (segments) net.body.checkpoint({.segments = std::min(segments, net.body.size())});
    }
    Loss<Array<S>> loss(const Micro& micro) {
        ForwardPass pass{.training = true, .seed = 5, .first_item = micro.from};
        return net.loss(micro.from, micro.to, pass);
    }
    void add(const Micro& micro) { window.add(loss(micro), {.weight = micro.weight}); }

    // Stores all results of an update.
    struct Bits {
        std::vector<Array<S>> gradients{}, weights{};
        double loss = 0, count = 0, norm = 0;
    };
    Bits finish() {
        const auto done = window.finish();
        Bits bits{.loss = done.loss(), .count = done.count, .norm = done.norm.value_or(0)};
        for (const auto& p : net.parameters) {
            bits.gradients.push_back(p.node()->gradient.clone());
            bits.weights.push_back(p.value().clone());
        }
        return bits;
    }

    Net<S> net;
    Adam<S> adam;
    Window<S> window;
};

template <class S>
bool same(const typename ExactTraining<S>::Bits& a, const typename ExactTraining<S>::Bits& b) {
    const auto equal = [](const auto& x, const auto& y) {
        return std::equal(x.begin(), x.end(), y.begin(),
                          [](const auto& p, const auto& q) { return same_bits(p, q); });
    };
    return equal(a.gradients, b.gradients) && equal(a.weights, b.weights) && a.loss == b.loss &&
           a.count == b.count && a.norm == b.norm;
}

template <class S> typename Window<S>::Options drawn_options(Random& random, Sum how) {
    typename Window<S>::Options options{.sum = how, .seed = 3};
    if (random.whole(0, 3) == 0) options.reduction = Reduction::sum;
    if (random.whole(0, 3) == 0) options.weigh = Weigh::micro_batches;
    if (random.coin()) options.max_norm = 0.5;
    if (random.whole(0, 3) == 0) options.max_value = 0.1;
    options.non_finite = random.coin() ? NonFinite::drop_micro : NonFinite::raise;
    return options;
}

// Trains with checkpoints, and with the micro-batches in a different order. At a random micro-batch, saves
// the window to a file and loads the file.
template <class S>
typename ExactTraining<S>::Bits trained_otherwise(std::uint64_t seed, Random& random,
                                                  const typename Window<S>::Options& options,
                                                  std::vector<Micro> micro_batches) {
    shuffle(random, micro_batches);
    const auto segments = static_cast<std::size_t>(random.whole(0, 3));
    auto training = std::make_unique<ExactTraining<S>>(seed, options, segments);
    const std::int64_t interrupted = random.whole(0, 2 * std::ssize(micro_batches));
    for (std::int64_t i = 0; i < std::ssize(micro_batches); ++i) {
        if (i == interrupted) {
            TrainingState state;
            training->window.save(state, "w");
            const std::string file = detail::state_bytes(state);
            training = std::make_unique<ExactTraining<S>>(seed, options, segments);
            training->window.load(detail::parse_state(std::as_bytes(std::span(file)), "file"), "w");
        }
        training->add(micro_batches[static_cast<std::size_t>(i)]);
    }
    return training->finish();
}

// Distributes the micro-batches to several models, each of which sums its gradients. Then merges the sums.
template <class S>
std::vector<Array<S>> distributed_sums(std::uint64_t seed, Random& random, std::vector<Micro> micro_batches) {
    shuffle(random, micro_batches);
    std::vector<std::unique_ptr<ExactTraining<S>>> ranks;
    std::vector<std::unique_ptr<detail::ExactGradients<S>>> sums;
    for (std::int64_t p = random.whole(1, 5); p > 0; --p) {
        ranks.push_back(std::make_unique<ExactTraining<S>>(seed, typename Window<S>::Options{}));
        sums.push_back(std::make_unique<detail::ExactGradients<S>>(ranks.back()->net.parameters));
    }
    for (const Micro& micro : micro_batches) {
        const auto rank =
            static_cast<std::size_t>(random.whole(0, static_cast<std::int64_t>(ranks.size()) - 1));
        sums[rank]->begin();
        const auto loss = ranks[rank]->loss(micro);
        (micro.weight == 1 ? loss.sum : loss.sum * micro.weight).backward();
        sums[rank]->add_gradients();
    }
    for (std::size_t rank = 1; rank < ranks.size(); ++rank)
        for (std::size_t i = 0; i < sums[0]->sums().size(); ++i)
            sums[0]->sums()[i].merge(sums[rank]->sums()[i]);
    sums[0]->round();
    std::vector<Array<S>> gradients;
    for (const auto& p : ranks[0]->net.parameters) gradients.push_back(p.node()->gradient.clone());
    return gradients;
}

struct Orders {
    int cases = 0, running_differs = 0;
};

template <class S> void check_orders(std::uint64_t seed, Orders& orders) {
    Random random(seed);
    const auto options = drawn_options<S>(random, Sum::exact);
    ExactTraining<S> one(seed, options);
    const std::vector<Micro> micro_batches = drawn_micro_batches(random, one.net.items);
    INFO("seed " << seed << (sizeof(S) == 4 ? ", float, " : ", double, ") << micro_batches.size()
                 << " micro-batches");
    for (const Micro& micro : micro_batches) one.add(micro);
    const auto want = one.finish();
    REQUIRE(same<S>(trained_otherwise<S>(seed, random, options, micro_batches), want));

    ExactTraining<S> added(seed, {.reduction = Reduction::sum, .sum = Sum::exact});
    for (const Micro& micro : micro_batches) added.add(micro);
    const auto sums = added.finish().gradients;
    const auto shared = distributed_sums<S>(seed, random, micro_batches);
    for (std::size_t i = 0; i < sums.size(); ++i) REQUIRE(same_bits(shared[i], sums[i]));

    // Counts how often two orders of the same summands give different running sums. The count proves that the
    // order matters for these summands.
    auto running = options;
    running.sum = Sum::running;
    ExactTraining<S> in_order(seed, running), reversed(seed, running);
    for (std::size_t i = 0; i < micro_batches.size(); ++i) {
        in_order.add(micro_batches[i]);
        reversed.add(micro_batches[micro_batches.size() - 1 - i]);
    }
    orders.running_differs += !same<S>(in_order.finish(), reversed.finish());
    ++orders.cases;
}

}  // namespace

TEST_CASE("Law: with exact sums neither order nor distribution of micro-batches changes a bit", "[alone]") {
    const char* const given = std::getenv("TALLY_LAW_SEED");
    const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
    WARN("seed " << seed);
    Orders orders;
    for (std::uint64_t i = 0; i < 600; ++i)
        i % 3 == 2 ? check_orders<double>(seed + i, orders) : check_orders<float>(seed + i, orders);
    CHECK(orders.cases == 600);
    CHECK(orders.running_differs > 200);
}

namespace {

// Computes the gradient of x·w. The gradient of w[i] is the sum of x[k, i] dy[k] over k. The error must be
// within the bound (2.3) of docs/mathematics.md.
template <class S> void check_bound(std::uint64_t seed) {
    Random random(seed);
    const std::int64_t items = random.whole(1, 60), width = random.whole(1, 9);
    Array<S> x = random.array<S>({items, width});
    S* const numbers = x.writable();
    for (std::size_t i = 0; i < x.size(); ++i)  // makes numbers of many magnitudes
        numbers[i] = std::ldexp(numbers[i], static_cast<int>(random.whole(-20, 10)));
    const Array<S> dy = random.array<S>({items, 1});
    std::vector<long double> truth(static_cast<std::size_t>(width)), size(truth);
    for (std::int64_t k = 0; k < items; ++k)
        for (std::size_t i = 0; i < truth.size(); ++i) {
            const auto term = static_cast<long double>(x.span()[static_cast<std::size_t>(k * width) + i]) *
                              static_cast<long double>(dy.span()[static_cast<std::size_t>(k)]) /
                              static_cast<long double>(items);
            truth[i] += term;
            size[i] += std::abs(term);
        }
    const long double u = std::numeric_limits<S>::epsilon() / 2,
                      gamma = static_cast<long double>(items + 3) * u /
                              (1 - static_cast<long double>(items + 3) * u);
    const std::vector<Micro> cut = drawn_micro_batches(random, items), whole{{0, items, 1}};
    for (const Sum how : {Sum::exact, Sum::running})
        for (const auto& micro_batches : {cut, whole}) {
            const Var<Array<S>> w = parameter(Array<S>::zeros({width, 1}));
            Sgd<S> sgd({w}, {.learning_rate = 0.1});
            Window<S> window(sgd, {.sum = how});
            for (const Micro& m : micro_batches)
                window.add(Loss(matmul(constant(x.slice_rows(m.from, m.to)), w) *
                                constant(dy.slice_rows(m.from, m.to))));
            window.finish();
            const std::vector<S> got = w.node()->gradient.to_vector();
            INFO("seed " << seed << ", " << items << " items in " << micro_batches.size());
            for (std::size_t i = 0; i < truth.size(); ++i)
                REQUIRE(std::abs(static_cast<long double>(got[i]) - truth[i]) <= gamma * size[i]);
        }
}

}  // namespace

TEST_CASE("Window: exact and running sums are within their bound of the whole batch's gradient") {
    const std::uint64_t seed = std::random_device()();
    WARN("seed " << seed);
    for (std::uint64_t i = 0; i < 300; ++i) {
        check_bound<float>(seed + i);
        check_bound<double>(seed + i);
    }
}

namespace {

Var<Array<float>> one_weight(float value = 1) { return parameter(Array<float>({1}, {value})); }

// Returns a loss of count 1 whose gradient is x.
Loss<Array<float>> term(const Var<Array<float>>& w, float x) {
    return Loss(w * constant(Array<float>({1}, {x})));
}

float gradient_of(const Var<Array<float>>& w) { return w.node()->gradient.to_vector()[0]; }

}  // namespace

TEST_CASE("Sum::exact: gradients that are too small for a running sum count") {
    for (const Sum how : {Sum::running, Sum::exact}) {
        const Tensor w = one_weight();
        Sgd<float> sgd({w}, {.learning_rate = 0.1});
        Window window(sgd, {.reduction = Reduction::sum, .sum = how});
        window.add(term(w, 0x1p24f));
        window.add(term(w, 1));
        CHECK(w.grad().item() == (how == Sum::exact ? 1 : 0x1p24f));  // Sum::exact: only of this add()
        window.add(term(w, 1));
        window.add(term(w, -0x1p24f));
        CHECK(window.finish().stepped);
        CHECK(gradient_of(w) == (how == Sum::exact ? 2 : 0));
    }
}

TEST_CASE("Sum::exact: a dropped micro-batch has no effect on the sum") {
    const float inf = std::numeric_limits<float>::infinity();
    const Tensor w = one_weight();
    Sgd<float> sgd({w}, {.learning_rate = 0.1});
    Window window(sgd, {.sum = Sum::exact, .non_finite = NonFinite::drop_micro});
    window.add(term(w, 3));
    window.add(term(w, inf));
    window.add(term(w, 1));
    const auto done = window.finish();
    CHECK(done.dropped == 1);
    CHECK(done.count == 2);
    CHECK(gradient_of(w) == 2);
    window.add(term(w, inf));
    CHECK_FALSE(window.finish().stepped);
}

TEST_CASE("Sum::exact: infinities of several micro-batches add up as in a running sum") {
    const float inf = std::numeric_limits<float>::infinity();
    const Tensor w = one_weight();
    Sgd<float> sgd({w}, {.learning_rate = 0.1});
    for (const NonFinite policy : {NonFinite::raise, NonFinite::drop_window}) {
        Window window(sgd, {.sum = Sum::exact, .non_finite = policy});
        window.add(term(w, inf));
        window.add(term(w, -inf));
        if (policy == NonFinite::raise)
            CHECK_THROWS_WITH(window.finish(), contains("infinite or NaN"));
        else
            CHECK(window.finish().dropped == 2);
        CHECK(std::isnan(gradient_of(w)));
        window.discard();
    }
    CHECK(w.item() == 1);
    // Partial sums overflow, but the total is finite. With Sum::running the total would be infinite.
    Window window(sgd, {.reduction = Reduction::sum, .sum = Sum::exact});
    const float most = std::numeric_limits<float>::max();
    for (const float x : {most, most, -most, -most, 0.5f}) window.add(term(w, x));
    CHECK(window.finish().stepped);
    CHECK(gradient_of(w) == 0.5f);
}

TEST_CASE("Sum::exact: totals, incomplete windows, regularizers and parameters without a gradient work") {
    const Tensor w = one_weight(), other = one_weight();
    Sgd<float> sgd({w, other}, {.learning_rate = 0.1, .weight_decay = 0.5});
    Window window(sgd, {.micro_batches = 4, .total = 4, .sum = Sum::exact});
    window.add(term(w, 8));
    window.add(term(w, 4));
    window.add_regularizer(sum(w) * 10);
    CHECK(window.flush().count == 2);  // the gradient is 12 / 4 * 4 / 2 + 10 = 16
    CHECK(gradient_of(w) == 16);
    CHECK(other.item() == 1);
    CHECK_FALSE(other.has_grad());
    CHECK(window.empty());
    window.add(term(other, 2));
    window.discard();
    for (const float x : {1.f, 2.f, 3.f, 4.f}) window.add(term(w, x));
    CHECK(window.finish().stepped);
    CHECK(gradient_of(w) == 2.5f);
}

TEST_CASE("Sum::exact: the digits are counted by the memory report and freed with the window's end") {
    const Tensor w = parameter(Array<float>::full({1000}, 1));
    Sgd<float> sgd({w}, {.learning_rate = 0.1});
    Window window(sgd, {.sum = Sum::exact});
    window.add(Loss(w * 1.0f));
    window.discard();
    const std::size_t before = memory::in_use(Device::cpu);
    window.add(Loss(w * 2.0f));
    CHECK(memory::in_use(Device::cpu) - before >= 8000);
    window.finish();
    CHECK(memory::in_use(Device::cpu) == before);
}

TEST_CASE("Sum::exact: if any allocation fails, nothing is updated and discard() restores the window") {
    const auto run = [](std::uint64_t failing) {
        const Tensor w = parameter(Array<float>::full({3}, 1));
        Sgd<float> sgd({w}, {.learning_rate = 0.1, .momentum = 0.5});
        Window window(sgd, {.reduction = Reduction::sum, .sum = Sum::exact});
        const auto fill = [&] {
            for (const float x : {1e-30f, 5.f, -0.0f, 1e30f, -1e30f}) window.add(Loss(w * x));
            window.finish();
        };
        bool failed = false;
        memory::detail::fail_allocation(failing);
        try {
            fill();
        } catch (const OutOfMemory&) {
            failed = true;
        }
        memory::detail::fail_allocation(0);
        if (failed) {
            CHECK(w.value().to_vector() == std::vector<float>(3, 1));
            window.discard();
            fill();
        }
        CHECK(w.value().to_vector() == std::vector<float>(3, 0.5f));
        return failed;
    };
    std::uint64_t failing = 1;
    while (run(failing)) ++failing;
    CHECK(failing > 20);
}

TEST_CASE("Sum::exact: combinations that are not supported throw an Error that names both options") {
    const Tensor w = one_weight();
    Sgd<float> sgd({w}, {.learning_rate = 0.1});
    Window window(sgd, {.reduction = Reduction::sum, .sum = Sum::exact});
    term(w, 2).sum.backward();
    CHECK_THROWS_WITH(window.after_backward(1), contains("Sum::exact") && contains("Sum::running"));
    window.discard();
    Sequential<float> model{Linear<float>(2, 2, {}), BatchNorm<float>(2)};
    Sgd<float> of_model(model.parameters(), {.learning_rate = 0.1});
    Window normalised(of_model, {.sum = Sum::exact});
    const Array<float> x({4, 2}, {1, 2, 3, 4, 5, 6, 7, 9});
    CHECK_THROWS_WITH(add_with_exact_batch_norm<float>(
                          normalised, model, split(Items::in_order(4), 2),
                          [&](const Items& items) { return constant(rows(x, items)); },
                          [&](const Tensor& y, const Items&) { return Loss(y); }),
                      contains("[exact_batch_norm]") && contains("Sum::exact") && contains("Sum::running"));
}

TEST_CASE("Window::load: invalid digits of an exact sum throw an Error and change nothing") {
    const Tensor w = one_weight();
    Sgd<float> sgd({w}, {.learning_rate = 0.1});
    Window window(sgd, {.sum = Sum::exact});
    window.add(term(w, 5));  // this exact sum needs only one digit
    TrainingState saved;
    window.save(saved, "w");
    const auto loaded_with = [&](const std::string& name, std::optional<TrainingState::Entry> entry) {
        window.load(with(saved, name, entry), "w");
    };
    const Array<double> none = Array<double>::zeros({0});
    CHECK_THROWS_WITH(loaded_with("w/sums/0/digits", none),
                      contains("'w/sums/0' are digits of (0); (1) expected"));
    CHECK_THROWS_WITH(loaded_with("w/sums/0/digits", Array<double>({1}, {0.5})), contains("has a digit 0.5"));
    CHECK_THROWS_WITH(loaded_with("w/sums/0/digits", Array<double>({1}, {1e30})),
                      contains("has a digit 1e+30"));
    CHECK_THROWS_WITH(loaded_with("w/sums/0/digits", Array<double>({1}, {std::nan("")})),
                      contains("has a digit nan"));
    CHECK_THROWS_WITH(loaded_with("w/sums/0/lowest", std::int64_t{1} << 40),
                      contains(", a count from 0 to "));
    CHECK_THROWS_WITH(loaded_with("w/sums/0/there", std::int64_t{2}), contains(", a count from 0 to "));
    CHECK_THROWS_WITH(loaded_with("w/sums/0/digits", {}), contains("there is no 'w/sums/0/digits'"));
    CHECK_THROWS_WITH(loaded_with("w/sums/7/there", std::int64_t{1}), contains("nothing here reads it"));
    window.add(term(w, 3));
    window.finish();
    CHECK(gradient_of(w) == 4);
    loaded_with("", {});
    window.add(term(w, 4));
    window.finish();
    CHECK(gradient_of(w) == 4.5f);
}

TEST_CASE("add_cached: exact sums yield the same gradient as running sums") {
    Random random(4);
    const Array<float> x = random.array<float>({12, 3}), y = random.array<float>({12, 4});
    std::vector<Array<float>> gradients;
    for (const Sum how : {Sum::running, Sum::exact}) {
        Linear<float> one(3, 5, {.seed = 1}), two(4, 5, {.seed = 2});
        std::vector<Tensor> all = one.parameters();
        for (const Tensor& p : two.parameters()) all.push_back(p);
        Sgd<float> sgd(all, {.learning_rate = 0.1});
        Window window(sgd, {.sum = how});
        add_cached<float>(
            window, split(Items::in_order(12), 5),
            {[&](const Items& items, ForwardPass& pass) { return one(constant(rows(x, items)), pass); },
             [&](const Items& items, ForwardPass& pass) { return two(constant(rows(y, items)), pass); }},
            [&](const auto& of) { return info_nce(of[0], of[1], 0.5); });
        window.finish();
        for (const Tensor& p : all) gradients.push_back(p.node()->gradient.clone());
    }
    const std::size_t half = gradients.size() / 2;
    for (std::size_t i = 0; i < half; ++i)
        for (std::size_t k = 0; k < gradients[i].size(); ++k)
            CHECK(std::abs(gradients[i].span()[k] - gradients[half + i].span()[k]) < 1e-6f);
}

TEST_CASE("Sum::exact: an infinite sum of finite gradients skips the step") {
    for (const NonFinite policy : {NonFinite::drop_micro, NonFinite::drop_window}) {
        const Tensor weight = parameter(Array<float>({1.0F}));
        Sgd<float> sgd({weight}, {.learning_rate = 0.1});
        Window<float> window(sgd, {.reduction = Reduction::sum, .sum = Sum::exact, .non_finite = policy});
        for (int micro = 0; micro < 2; ++micro)
            window.add({sum(weight) * 2e38 - 2e38, constant(Array<float>::full({}, 1))});
        const auto done = window.finish();
        CHECK(!done.stepped);
        CHECK(done.dropped == 2);
        CHECK(weight.value().item() == 1);
    }
}

}  // namespace tally::test
