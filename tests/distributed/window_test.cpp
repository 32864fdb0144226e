// Tests that an update by DataParallel equals the update by one process that adds gradients in rank order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

template <class S> using Leaves = std::vector<Var<Array<S>>>;

// Generates the random parameters of a linear model.
template <class S> struct RandomWindow {
    std::vector<Array<S>> values;
    struct Micro {
        std::vector<Array<S>> with;  // factor of each parameter, or empty if the loss ignores the parameter
        double count;
    };
    std::vector<std::vector<Micro>> micros;  // micro-batches of each rank
    typename Window<S>::Options options;
    std::size_t bucket;
    int kind;  // kind of optimizer

    explicit RandomWindow(Random& r) {
        for (std::int64_t n = r.whole(1, 4); n-- > 0;) values.push_back(r.array<S>(r.shape(2, 5)));
        micros.resize(ranks());
        double total = 0;
        for (std::size_t rank = 0; rank < ranks(); ++rank)
            for (std::int64_t m = r.whole(0, 3); m-- > 0;) add(r, rank, total);
        if (total == 0) add(r, r.whole(0, 1) == 0 ? 0 : ranks() - 1, total);
        if (r.coin()) options.max_norm = r.between(0.01, 2);
        if (r.whole(0, 3) == 0) options.max_value = r.between(0.01, 1);
        if (r.whole(0, 3) == 0)
            options.reduction = Reduction::sum;
        else if (r.coin())
            options.total = total;
        bucket = static_cast<std::size_t>(r.whole(1, 40));
        kind = static_cast<int>(r.whole(0, 2));
    }
    void add(Random& r, std::size_t rank, double& total) {
        Micro micro{{}, static_cast<double>(r.whole(1, 5))};
        for (const Array<S>& value : values)
            micro.with.push_back(r.whole(0, 4) == 0 ? Array<S>() : r.array<S>(value.shape()));
        if (!micro.with[0].storage())
            micro.with[0] = r.array<S>(values[0].shape());  // the loss needs a gradient
        micros[rank].push_back(micro);
        total += micro.count;
    }

    Leaves<S> leaves() const {
        Leaves<S> all;
        for (const Array<S>& value : values) all.push_back(parameter(value.clone()));
        return all;
    }
    std::unique_ptr<Optimizer<S>> make_optimizer(const Leaves<S>& leaves) const {
        if (kind == 0)
            return std::make_unique<Sgd<S>>(leaves,
                                            Sgd<double>::Options{.learning_rate = 0.1, .momentum = 0.9});
        if (kind == 1) return std::make_unique<Adam<S>>(leaves);
        return std::make_unique<AdamW<S>>(leaves);
    }
    static Loss<Array<S>> loss(const Leaves<S>& leaves, const std::vector<Array<S>>& with, double count) {
        Var<Array<S>> all = constant(Array<S>::zeros({}));
        for (std::size_t i = 0; i < leaves.size(); ++i)
            if (with[i].storage()) all = all + sum(leaves[i] * constant(with[i]));
        return {all, constant(Array<S>::full({}, static_cast<S>(count)))};
    }
    // Returns the gradients of one rank's micro-batches. Divides the gradients by options.total if it is set.
    std::vector<std::optional<Array<S>>> gradients(std::size_t rank) const {
        const Leaves<S> own = leaves();
        for (const Micro& micro : micros[rank]) {
            Var<Array<S>> share = loss(own, micro.with, micro.count).sum;
            if (options.total > 0) share = share / options.total;
            share.backward();
        }
        std::vector<std::optional<Array<S>>> all;
        for (const auto& leaf : own)
            all.push_back(leaf.has_grad() ? std::optional(leaf.grad().clone()) : std::nullopt);
        return all;
    }
    // Trains on one process. The gradient is the sum of all ranks' gradients in rank order.
    Leaves<S> expected(int updates) const {
        const Leaves<S> own = leaves();
        const auto optimizer = make_optimizer(own);
        typename Window<S>::Options once = options;
        if (options.total > 0) once.reduction = Reduction::sum, once.total = 0;  // divided already
        Window<S> window(*optimizer, once);
        for (int update = 0; update < updates; ++update) {
            std::vector<Array<S>> sums(values.size());
            double count = 0;
            for (std::size_t rank = 0; rank < ranks(); ++rank) {
                const auto theirs = gradients(rank);
                for (std::size_t i = 0; i < sums.size(); ++i) {
                    if (!theirs[i]) continue;
                    if (!sums[i].storage())
                        sums[i] = theirs[i]->clone();
                    else
                        for (std::size_t j = 0; j < sums[i].size(); ++j)
                            sums[i].writable()[j] += theirs[i]->data()[j];
                }
                for (const Micro& micro : micros[rank]) count += micro.count;
            }
            window.add(loss(own, sums, count));
            window.finish();
        }
        return own;
    }
};

template <class S> void check_update(std::uint64_t seed) {
    Random r(seed);
    const RandomWindow<S> drawn(r);
    CAPTURE(seed, world().size(), drawn.bucket, drawn.kind, drawn.options.total);
    const Leaves<S> mine = drawn.leaves();
    const auto optimizer = drawn.make_optimizer(mine);
    DataParallel<S> across(world(), {.bucket = drawn.bucket});
    Window<S> window(*optimizer, drawn.options, &across);
    typename Window<S>::Result done;
    constexpr int updates = 2;
    for (int update = 0; update < updates; ++update) {
        for (const auto& micro : drawn.micros[me()]) window.add(drawn.loss(mine, micro.with, micro.count));
        done = window.finish();
        REQUIRE(done.stepped);
    }
    double count = 0;
    std::int64_t micros = 0;
    for (const auto& each : drawn.micros)
        for (const auto& micro : each) count += micro.count, ++micros;
    CHECK(done.count == count);
    CHECK(done.micro_batches == micros);
    CHECK(same_everywhere(done.loss_sum));
    const Leaves<S> expected = drawn.expected(updates);
    for (std::size_t i = 0; i < mine.size(); ++i) CHECK(same_bits(mine[i].value(), expected[i].value()));
    across.require_same_weights();
}

// A model with one weight. The target of every item is 1.
struct OneWeight {
    Tensor weight = parameter(Array<float>({1, 1}, {0.5F}));
    Sgd<float> sgd{{weight}, {.learning_rate = 0.1}};
    Loss<Array<float>> loss(std::initializer_list<float> x) const {
        const auto n = static_cast<std::int64_t>(x.size());
        return mse(matmul(constant(Array<float>({n, 1}, x)), weight),
                   constant(Array<float>::full({n, 1}, 1)));
    }
};

}  // namespace

TEST_CASE("DataParallel: an update has the bits of one process that adds the gradients in rank order") {
    const std::uint64_t seed = common_seed("updates");
    for (std::uint64_t i = 0; i < 250; ++i) {
        check_update<float>(seed + 2 * i);
        check_update<double>(seed + 2 * i + 1);
    }
}

TEST_CASE(
    "ProcessGroup::AllReduce::fast: all processes have one result, within the error bound of another order") {
    Random r(common_seed("fast"));
    for (int i = 0; i < 30; ++i) {
        const RandomWindow<double> drawn(r);
        const Leaves<double> mine = drawn.leaves();
        Sgd<double> sgd(mine, {.learning_rate = 1});
        DataParallel<double> across(world(),
                                    {.reduce = ProcessGroup::AllReduce::fast, .bucket = drawn.bucket});
        Window<double> window(sgd, {.reduction = Reduction::sum}, &across);
        for (const auto& micro : drawn.micros[me()]) window.add(drawn.loss(mine, micro.with, micro.count));
        window.finish();
        across.require_same_weights();
        std::vector<std::vector<std::optional<Array<double>>>> theirs;
        RandomWindow<double> plain = drawn;
        plain.options = {};
        for (std::size_t rank = 0; rank < ranks(); ++rank) theirs.push_back(plain.gradients(rank));
        for (std::size_t p = 0; p < mine.size(); ++p)
            for (std::size_t j = 0; j < mine[p].value().size(); ++j) {
                long double sum = 0, size = std::abs(drawn.values[p].data()[j]);
                for (const auto& of : theirs)
                    if (of[p]) sum += of[p]->data()[j], size += std::abs(of[p]->data()[j]);
                // The bound allows the rounding of P - 1 additions, and of one subtraction from the weight.
                const long double u = 0x1p-53L, n = static_cast<long double>(ranks());
                const long double difference = mine[p].value().data()[j] - (drawn.values[p].data()[j] - sum);
                if (std::abs(difference) > n * u / (1 - n * u) * size)
                    FAIL_CHECK("difference: " << double(difference));
            }
    }
}

TEST_CASE("DataParallel: a process without a gradient adds nothing, not even zero") {
    // Subtracting -0 from a weight of -0 gives 0, but subtracting 0 gives -0.
    const Tensor weight = parameter(Array<float>({-0.0F}));
    Sgd<float> sgd({weight}, {.learning_rate = 0.5});
    DataParallel<float> across(world());
    Window<float> window(sgd, {}, &across);
    if (me() == 0)
        window.add({sum(weight * constant(Array<float>({-0.0F}))), constant(Array<float>::full({}, 1))});
    window.finish();
    CHECK(!std::signbit(weight.value().item()));
}

TEST_CASE("DataParallel: several windows with different parameters may share one object") {
    const std::vector<Tensor> weights = {parameter(Array<float>::zeros({2, 3})),
                                         parameter(Array<float>::zeros({5}))};
    Sgd<float> first({weights[0]}, {.learning_rate = 1}), second({weights[1]}, {.learning_rate = 1});
    DataParallel<float> across(world(), {.bucket = 4});
    Window<float> one(first, {.reduction = Reduction::sum}, &across),
        other(second, {.reduction = Reduction::sum}, &across);
    const auto add = [&](Window<float>& window, const Tensor& weight, float factor) {
        window.add(
            {sum(weight) * (factor * static_cast<float>(me() + 1)), constant(Array<float>::full({}, 1))});
    };
    add(one, weights[0], 1);
    add(other, weights[1], 10);
    one.finish();
    other.finish();
    const auto all = static_cast<float>(ranks() * (ranks() + 1) / 2);
    for (const float weight : weights[0].value().span()) CHECK(weight == -all);
    for (const float weight : weights[1].value().span()) CHECK(weight == -10 * all);
}

TEST_CASE("Window::finish: an infinite sum of finite gradients skips the step on all processes") {
    const Tensor weight = parameter(Array<float>({1.0F}));
    Sgd<float> sgd({weight}, {.learning_rate = 0.1});
    DataParallel<float> across(world());
    Window<float> window(sgd, {.reduction = Reduction::sum, .non_finite = NonFinite::drop_micro}, &across);
    window.add({sum(weight) * 2e38 - 2e38, constant(Array<float>::full({}, 1))});
    const auto done = window.finish();
    CHECK(done.stepped == (ranks() == 1));
    CHECK(done.dropped == (ranks() == 1 ? 0 : static_cast<std::int64_t>(ranks())));
    CHECK(std::isfinite(weight.value().item()));
}

TEST_CASE("Window::finish: regularizers, clipping and the schedule apply once, to the sum of all processes") {
    OneWeight model;
    DataParallel<float> across(world());
    Window<float> window(
        model.sgd,
        {.total = static_cast<double>(ranks()), .max_norm = 0.25, .schedule = Schedule::constant(0.5)},
        &across);
    window.add(model.loss({3}));
    window.add_regularizer(sum(model.weight) * 1000);
    const auto done = window.finish();
    CHECK(std::abs(*done.norm - (3 * 2 * 0.5 + 1000)) < 1e-2);
    CHECK(std::abs(model.weight.value().item() - (0.5 - 0.5 * 0.25)) < 1e-6);
}

TEST_CASE("NonFinite: a non-finite gradient on one process has its effect on all processes") {
    for (const bool drops : {true, false}) {
        OneWeight model;
        DataParallel<float> across(world());
        Window<float> window(model.sgd, {.non_finite = drops ? NonFinite::drop_window : NonFinite::raise},
                             &across);
        const bool last = me() + 1 == ranks();
        window.add(model.loss({last ? std::numeric_limits<float>::infinity() : 1}));
        if (drops) {
            const auto done = window.finish();
            CHECK(!done.stepped);
            CHECK(done.dropped == static_cast<std::int64_t>(ranks()));
        } else {
            CHECK_THAT(message_of([&] { window.finish(); }),
                       contains("infinite or NaN; nothing was updated"));
            window.discard();
        }
        CHECK(model.weight.value().item() == 0.5F);
        window.add(model.loss({1}));
        CHECK(window.finish().stepped);  // all processes continue
    }
    // If one process drops a micro-batch, `dropped` is 1 in the results of all processes.
    OneWeight model;
    DataParallel<float> across(world());
    Window<float> window(model.sgd, {.non_finite = NonFinite::drop_micro}, &across);
    window.add(model.loss({me() + 1 == ranks() ? std::numeric_limits<float>::quiet_NaN() : 1}));
    window.add(model.loss({1}));
    const auto done = window.finish();
    CHECK(done.dropped == 1);
    CHECK(done.count == static_cast<double>(2 * ranks() - 1));
}

TEST_CASE("BatchNorm: statistics are pooled over all processes in rank order, and move once per update") {
    const auto make = [] { return Sequential<double>(BatchNorm<double>(3), Linear<double>(3, 2, {1, 1})); };
    Random r(common_seed("statistics"));
    std::vector<std::vector<Array<double>>> x(ranks());
    for (std::size_t rank = 0; rank < ranks(); ++rank)
        for (std::size_t micro = 0; micro < (rank == 1 ? 0 : rank + 1); ++micro)
            x[rank].push_back(r.array<double>({r.whole(2, 5), 3}));
    const auto add = [](Window<double>& window, Sequential<double>& model, const Array<double>& of) {
        ForwardPass& pass = window.begin_micro_batch(of.shape()[0]);
        window.add(mse(model(constant(of), pass), constant(Array<double>::zeros({of.shape()[0], 2}))));
    };
    Sequential<double> model = make(), alone = make();
    Sgd<double> sgd(model.parameters(), {.learning_rate = 0.1}),
        sgd_alone(alone.parameters(), {.learning_rate = 0.1});
    DataParallel<double> across(world(), {.model = &model});
    Window<double> window(sgd, {}, &across), window_alone(sgd_alone);
    for (const auto& of : x[me()]) add(window, model, of);
    for (const auto& rank : x)
        for (const auto& of : rank) add(window_alone, alone, of);
    window.finish();
    window_alone.finish();
    auto &norm = static_cast<BatchNorm<double>&>(model.layer(0)),
         &norm_alone = static_cast<BatchNorm<double>&>(alone.layer(0));
    CHECK(norm.updates.item() == 1);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(std::abs(norm.running.mean.data()[i] - norm_alone.running.mean.data()[i]) < 1e-14);
        CHECK(std::abs(norm.running.variance.data()[i] - norm_alone.running.variance.data()[i]) < 1e-14);
    }
    CHECK(same_everywhere(norm.running.mean));
    CHECK(same_everywhere(norm.running.variance));
    across.require_same_weights();
}

TEST_CASE("DataParallel::share: the processes draw the same masks as one process") {
    Random r(common_seed("shares"));
    for (int i = 0; i < 20; ++i) {
        const std::vector<Items> parts = split(Items::in_order(r.whole(1, 40)), r.whole(1, 9));
        OneWeight model;
        DataParallel<float> across(world());
        Window<float> window(model.sgd, {}, &across);
        std::string mine;
        for (const Items& part : across.share(parts)) {
            const ForwardPass& pass = window.begin_micro_batch(part.count());
            CHECK(pass.first_item == part[0]);
            window.add(model.loss({1}));
            mine += std::to_string(part[0]) + " ";
        }
        std::string all, expected;
        for (const std::string& one : world().all_gather("shares", mine)) all += one;
        for (const Items& part : parts) expected += std::to_string(part[0]) + " ";
        CHECK(all == expected);
        window.finish();
    }
}

TEST_CASE("DataParallel::share: a second call in one window, which would repeat masks, throws an Error") {
    const std::vector<Items> parts = split(Items::in_order(3 * std::int64_t(ranks())), 3);
    OneWeight model, more;
    DataParallel<float> across(world());
    Window<float> window(model.sgd, {}, &across), other(more.sgd, {}, &across);
    const auto add = [&](Window<float>& to, const OneWeight& of, const std::vector<Items>& shared) {
        for (const Items& part : shared) to.begin_micro_batch(part.count()), to.add(of.loss({1}));
    };
    for (int update = 0; update < 3; ++update) {  // one call per window is right, also after discard()
        add(window, model, across.share(parts));
        if (update == 1) window.discard(), add(window, model, across.share(parts));
        across.share(parts);  // this call is for micro-batches that are not trained
        window.finish();
        add(other, more, across.share(parts));  // two windows may share one DataParallel
        other.finish();
    }
    const std::vector<Items> shared = across.share(parts);
    add(window, model, shared);
    across.share(parts);
    CHECK_THAT(message_of([&] { window.begin_micro_batch(3); }),
               contains("share() was called again in this window"));
    across.begin_at(100);
    CHECK(window.begin_micro_batch(3).first_item == 100 + shared[0].count());
    window.add(model.loss({1}));
    CHECK(window.finish().stepped);
}

TEST_CASE("Tail: a window is incomplete if it is incomplete on any process") {
    OneWeight model;
    DataParallel<float> across(world());
    Window<float> window(model.sgd, {.micro_batches = 2, .tail = Tail::drop}, &across);
    CHECK(window.flush().micro_batches == 0);
    window.add(model.loss({1}));
    if (me() > 0) window.add(model.loss({1}));  // only rank 0's window is incomplete
    CHECK(!window.finish().stepped);
    window.add(model.loss({1}));
    window.add(model.loss({1}));
    CHECK(window.finish().stepped);
    CHECK_THAT(message_of([&] { window.finish(); }), contains("no micro-batch was added on any process"));
}

}  // namespace tally::test
