// Sums that begin while backward runs: the bits are those of sums at the window's end, whatever happens in between.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "processes/world.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

template <class S> using Leaves = std::vector<Var<Array<S>>>;

bool last() { return me() + 1 == ranks(); }

std::uint64_t early_of_all() {
    std::uint64_t sum = 0;
    for (const std::string& one : world().meet("bytes sent early", std::to_string(world().sent().early)))
        sum += std::stoull(one);
    return sum;
}

// A chain of matrices, some of which come twice, some in a checkpoint, and some not in every micro-batch.
template <class S> struct Chain {
    struct Micro {
        Array<S> x;
        std::vector<std::size_t> layers;  // which matrix comes when
        std::vector<bool> checkpointed;
    };
    std::vector<Array<S>> values;
    std::vector<std::vector<std::vector<Micro>>> micros;  // of each update, of each rank
    std::vector<bool> planned;                            // by each rank
    WindowOptions<S> options;
    std::size_t bucket;

    explicit Chain(Random& r) {
        const std::int64_t width = r.whole(1, 6);
        for (std::int64_t n = r.whole(1, 6); n-- > 0;) values.push_back(r.array<S>({width, width}));
        for (std::size_t rank = 0; rank < ranks(); ++rank) planned.push_back(r.whole(0, 4) != 0);
        for (int update = 0; update < 3; ++update) {
            auto& each = micros.emplace_back(ranks());
            for (std::size_t rank = 0; rank < ranks(); ++rank)
                for (std::int64_t m = r.whole(0, 3); m-- > 0;) each[rank].push_back(micro(r, width));
            if (std::ranges::all_of(each, [](const auto& those) { return those.empty(); }))
                each[0].push_back(micro(r, width));
        }
        if (r.coin()) options.max_norm = r.between(0.01, 2);
        if (r.whole(0, 3) == 0) options.reduction = Reduction::sum;
        if (r.whole(0, 3) == 0) options.noise = true;
        if (r.whole(0, 5) == 0) options.non_finite = NonFinite::drop_micro;
        if (r.whole(0, 5) == 0) options.sum = Sum::exact;
        bucket = static_cast<std::size_t>(r.whole(1, 80));
    }
    Micro micro(Random& r, std::int64_t width) const {
        Micro micro{r.array<S>({r.whole(1, 4), width}), {}, {}};
        for (std::size_t i = 0; i < values.size(); ++i)
            if (i == 0 || r.whole(0, 5) != 0)
                micro.layers.push_back(
                    r.whole(0, 9) == 0 ? static_cast<std::size_t>(r.whole(0, std::int64_t(i))) : i);
        for (std::size_t i = 0; i < micro.layers.size(); ++i)
            micro.checkpointed.push_back(r.whole(0, 3) == 0);
        return micro;
    }
    static Loss<Array<S>> loss(const Leaves<S>& leaves, const Micro& micro) {
        Var<Array<S>> h = constant(micro.x);
        for (std::size_t i = 0; i < micro.layers.size(); ++i) {
            const Var<Array<S>> weight = leaves[micro.layers[i]];
            const auto layer = [weight](const Var<Array<S>>& x) { return tanh(matmul(x, weight)); };
            h = micro.checkpointed[i] ? checkpoint(layer, h) : layer(h);
        }
        return {sum(h * h), constant(Array<S>::full({}, static_cast<S>(micro.x.shape()[0])))};
    }
    Leaves<S> trained(bool overlap) const {
        Leaves<S> leaves;
        for (const Array<S>& value : values) leaves.push_back(parameter(value.clone()));
        Adam<S> adam(leaves, {.learning_rate = 0.1});
        Ranks<S> across(world(), {.bucket = bucket, .overlap = overlap});
        Window<S> window(adam, options, &across);
        for (const auto& update : micros) {
            const auto& mine = update[me()];
            window.plan(planned[me()] ? std::ssize(mine) : 0);
            for (const Micro& micro : mine) window.add(loss(leaves, micro));
            REQUIRE(window.finish().stepped);
        }
        across.expect_same_weights();
        return leaves;
    }
};

template <class S> void overlap_changes_no_bit(std::uint64_t seed) {
    Random r(seed);
    const Chain<S> chain(r);
    CAPTURE(seed, ranks(), chain.bucket, chain.values.size());
    const Leaves<S> with = chain.trained(true), without = chain.trained(false);
    for (std::size_t i = 0; i < with.size(); ++i) CHECK(same_bits(with[i].value(), without[i].value()));
}

// Six layers of 4 x 4 numbers and one window over all processes, each with one micro-batch that is planned.
struct Deep {
    std::vector<Tensor> weights;
    Sgd<float> sgd;
    Ranks<float> across;
    Window<float> window;

    explicit Deep(bool overlap, WindowOptions<float> options = {.micro_batches = 1})
        : weights(drawn()),
          sgd(weights, {.learning_rate = 0.1}),
          across(world(), {.bucket = 10, .overlap = overlap}),
          window(sgd, options, &across) {}
    static Tensor failing(const Tensor& h) {
        using A = Array<float>;
        return custom(
            "failing", [](const A& x) { return x.clone(); },
            [](Pull<A>, const A&, const A&, const A&) { throw Error("a rule has failed"); }, h);
    }
    static std::vector<Tensor> drawn() {
        std::vector<Tensor> all;
        for (std::uint64_t layer = 0; layer < 6; ++layer)
            all.push_back(parameter(random_uniform<float>({4, 4}, {.seed = 1, .stream = layer}, -1, 1)));
        return all;
    }
    Loss<Array<float>> loss(std::uint64_t micro, bool fails = false) const {
        Tensor h = constant(random_uniform<float>({3, 4}, {.seed = 2, .stream = 100 * micro + me()}, -1, 1));
        for (std::size_t i = 0; i < weights.size(); ++i) {
            h = tanh(matmul(h, weights[i]));
            if (fails && i == 1) h = failing(h);
        }
        return {sum(h * h), constant(Array<float>::full({}, 3))};
    }
    void step(std::uint64_t micro) {
        window.add(loss(micro));
        REQUIRE(window.finish().stepped);
    }
};

void expect_same_bits(const Deep& one, const Deep& other) {
    for (std::size_t i = 0; i < one.weights.size(); ++i)
        CHECK(same_bits(one.weights[i].value(), other.weights[i].value()));
}

// Both train, and between the first update and the last one something happens to the one that overlaps.
template <class F>
void nothing_is_left_of(F what_happens, WindowOptions<float> options = {.micro_batches = 1}) {
    Deep with(true, options), without(false, options);
    with.step(0);
    without.step(0);
    what_happens(with);
    for (std::uint64_t update = 1; update < 4; ++update) {
        with.step(update);
        without.step(update);
    }
    expect_same_bits(with, without);
    with.across.expect_same_weights();
}

}  // namespace

TEST_CASE("A window whose sums begin while backward runs has the bits of one whose sums begin at its end") {
    const std::uint64_t seed = common_seed("overlap");
    const std::uint64_t before = early_of_all();
    for (std::uint64_t i = 0; i < 100; ++i) {
        overlap_changes_no_bit<float>(seed + 2 * i);
        overlap_changes_no_bit<double>(seed + 2 * i + 1);
    }
    CHECK((early_of_all() > before) == (ranks() > 1));
}

TEST_CASE("Gradients go while backward runs, each once: no byte more than at the window's end") {
    Deep deep(true);
    for (std::uint64_t update = 0; update < 3; ++update) {
        const Sent own = world().sent();
        const std::uint64_t numbers = numbers_of_all();
        deep.window.add(deep.loss(update));
        // Of 96 numbers in buckets of 10 eight are begun before the first layer's gradient is there, and given at once.
        CHECK(world().sent().sums - own.sums == (ranks() > 1 ? 8 : 0));
        CHECK((world().sent().early > own.early) == (ranks() > 1));
        CHECK(world().sent().early - own.early == world().sent().numbers - own.numbers);
        deep.window.finish();
        CHECK(world().sent().sums - own.sums == (ranks() > 1 ? 10 : 0));
        CHECK(numbers_of_all() - numbers == 2 * (ranks() - 1) * 96 * sizeof(float));
    }
}

TEST_CASE("All has gone before the window's end where backward has more to do than its weights") {
    Deep deep(true);
    const Tensor input = parameter(random_uniform<float>({3, 4}, {.seed = 2, .stream = me()}, -1, 1));
    Tensor h = tanh(input);
    for (const Tensor& weight : deep.weights) h = tanh(matmul(h, weight));
    const Sent own = world().sent();
    deep.window.add({sum(h * h), constant(Array<float>::full({}, 3))});
    CHECK(world().sent().sums - own.sums == (ranks() > 1 ? 10 : 0));  // of 96 numbers in buckets of 10
    deep.window.finish();
    CHECK(world().sent().sums - own.sums == (ranks() > 1 ? 10 : 0));
}

TEST_CASE("A weight that the model reads twice goes when both have been there, and once") {
    Deep with(true), without(false);
    const std::uint64_t before = numbers_of_all();
    for (Deep* deep : {&with, &without}) {
        Tensor h = constant(random_uniform<float>({3, 4}, {.seed = 2, .stream = me()}, -1, 1));
        for (const std::size_t i : {5u, 0u, 1u, 2u, 5u, 3u, 4u, 5u}) h = tanh(matmul(h, deep->weights[i]));
        deep->window.add({sum(h * h), constant(Array<float>::full({}, 3))});
        deep->window.finish();
    }
    expect_same_bits(with, without);
    CHECK(numbers_of_all() - before == 2 * (ranks() - 1) * (96 + 96) * sizeof(float));
}

TEST_CASE("A process to which no gradient has come adds nothing to what others have begun, and not a zero") {
    // A weight of -0 that is stepped by -0 becomes 0, and one that is stepped by 0 stays -0.
    const Tensor first = parameter(Array<float>({1.0F})), weight = parameter(Array<float>({-0.0F}));
    Sgd<float> sgd({first, weight}, {.learning_rate = 0.5});
    Ranks<float> across(world(), {.bucket = 1, .overlap = true});
    Window<float> window(sgd, {.micro_batches = 1}, &across);
    const std::uint64_t begun = world().sent().sums;
    if (me() == 0) {  // the weight's gradient is there when backward has still to come to the first one
        const Tensor longer = sum(exp(exp(first)));
        window.add(
            {longer + sum(weight * constant(Array<float>({-0.0F}))), constant(Array<float>::full({}, 1))});
    }
    CHECK((world().sent().sums > begun) == (me() == 0 && ranks() > 1));
    window.finish();
    CHECK(!std::signbit(weight.value().item()));
}

TEST_CASE("Only the last micro-batch of those that are planned sends anything") {
    Deep deep(true, {.micro_batches = 3});
    for (std::uint64_t micro = 0; micro < 3; ++micro) {
        const Sent before = world().sent();
        deep.window.add(deep.loss(micro));
        CHECK((world().sent().numbers > before.numbers) == (micro == 2 && ranks() > 1));
    }
    deep.window.finish();
    deep.window.plan(0);  // how many there will be is not known
    const Sent before = world().sent();
    deep.window.add(deep.loss(3));
    CHECK(world().sent().numbers == before.numbers);
    deep.window.finish();
}

TEST_CASE("A gradient that changes after it was sent is summed again") {
    Deep with(true), without(false);
    for (Deep* deep : {&with, &without}) {
        deep->window.add(deep->loss(0));
        if (last())
            deep->window.whole([&] { deep->window.backward([&] { sum(deep->weights[5]).backward(); }); });
        deep->window.finish();
    }
    for (Deep* deep : {&with, &without}) {  // it was not the last one, after all
        deep->window.add(deep->loss(1));
        deep->window.plan(2);
        deep->window.add(deep->loss(2));
        deep->window.finish();
    }
    expect_same_bits(with, without);
    // A weight that two checkpoints read: the second of them to be computed anew is the first one in the chain.
    Deep twice(true), alike(false);
    const std::uint64_t before = numbers_of_all();
    for (Deep* deep : {&twice, &alike}) {
        const Tensor weight = deep->weights[5];
        const auto layer = [weight](const Tensor& x) { return tanh(matmul(x, weight)); };
        Tensor h = constant(random_uniform<float>({3, 4}, {.seed = 2, .stream = me()}, -1, 1));
        h = checkpoint(layer, h);
        for (std::size_t i = 0; i < 5; ++i) h = tanh(matmul(h, deep->weights[i]));
        h = checkpoint(layer, h);
        deep->window.add({sum(h * h), constant(Array<float>::full({}, 3))});
        deep->window.finish();
    }
    expect_same_bits(twice, alike);
    CHECK(numbers_of_all() - before == 2 * (ranks() - 1) * (96 + 96 + 16) * sizeof(float));
}

TEST_CASE("What was begun and comes to no end does not meet what comes later") {
    nothing_is_left_of([](Deep& deep) {  // everybody discards, and nobody says so
        deep.window.add(deep.loss(50));
        deep.window.discard();
    });
    nothing_is_left_of([](Deep& deep) {  // some have begun, and all discard
        if (last()) deep.window.add(deep.loss(50));
        deep.window.discard();
    });
    if (ranks() == 1) return;
    nothing_is_left_of([](Deep& deep) {  // one makes another call
        deep.window.add(deep.loss(50));
        CHECK_THAT(message_of([&] { last() ? deep.window.flush() : deep.window.finish(); }),
                   contains("calls flush of window 1"));
        deep.window.discard();
    });
    nothing_is_left_of([](Deep& deep) {  // one has begun, and the others come with another window's number
        deep.window.add(deep.loss(50));
        if (last()) deep.window.discard(), deep.window.add(deep.loss(51));
        CHECK_THAT(message_of([&] { deep.window.finish(); }), contains("calls finish of window 2"));
        deep.window.discard();
        if (!last()) deep.window.discard();
    });
    nothing_is_left_of([](Deep& deep) {  // one throws amid its backward, when it has begun itself
        const std::uint64_t before = world().sent().sums;
        const auto add = [&] { deep.window.add(deep.loss(50, last())); };
        if (last())
            CHECK(message_of(add) == "a rule has failed");
        else
            add();
        CHECK(world().sent().sums - before >= 3);
        CHECK_THAT(message_of([&] { deep.window.finish(); }),
                   contains("an error has left its gradients unfinished"));
        deep.window.discard();
    });
    nothing_is_left_of([](Deep& deep) {  // what they compare at the window's end differs
        deep.window.add(deep.loss(50));
        if (last()) deep.sgd.set_learning_rate(0.5);
        CHECK_THAT(message_of([&] { deep.window.finish(); }), contains("has the learning rate 0.5"));
        if (last()) deep.sgd.set_learning_rate(0.1);
        deep.window.discard();
    });
}

TEST_CASE("Whatever all meet for between the last micro-batch and the window's end ends what was begun") {
    nothing_is_left_of([](Deep& deep) {
        deep.window.add(deep.loss(0));
        deep.across.expect_same_weights();
        deep.window.discard();
    });
    Deep with(true), without(false);
    for (std::uint64_t update = 0; update < 3; ++update)
        for (Deep* deep : {&with, &without}) {
            deep->window.add(deep->loss(update));
            if (update == 1)
                CHECK(sum_of_all(world(), Array<float>({1})).item() == static_cast<float>(ranks()));
            deep->window.finish();
        }
    expect_same_bits(with, without);
}

TEST_CASE("A window that is dropped, or stays open, has begun its sums for nothing") {
    // Rank 0 has one micro-batch of two, and so nobody's window is full.
    for (const Tail tail : {Tail::drop, Tail::carry}) {
        Deep with(true, {.micro_batches = 2, .tail = tail}),
            without(false, {.micro_batches = 2, .tail = tail});
        for (Deep* deep : {&with, &without}) {
            for (std::uint64_t update = 0; update < 2; ++update) {
                deep->window.add(deep->loss(10 * update));
                if (me() > 0) deep->window.add(deep->loss(10 * update + 1));
                CHECK(!deep->window.finish().stepped);
                if (tail == Tail::carry && me() == 0) deep->window.add(deep->loss(10 * update + 2));
                if (tail == Tail::carry) CHECK(deep->window.finish().stepped);
            }
            deep->window.add(deep->loss(90));
            deep->window.add(deep->loss(91));
            CHECK(deep->window.finish().stepped);
        }
        expect_same_bits(with, without);
    }
}

TEST_CASE("Two windows begin in whatever order on different processes") {
    std::vector<std::vector<Tensor>> weights;
    for (const bool overlap : {true, false}) {
        std::vector<Tensor> all = Deep::drawn();
        Sgd<float> first({all[0], all[1], all[2]}, {.learning_rate = 0.1}),
            second({all[3], all[4], all[5]}, {.learning_rate = 0.1});
        Ranks<float> across(world(), {.bucket = 7, .overlap = overlap});
        Window<float> one(first, {.micro_batches = 1}, &across), other(second, {.micro_batches = 1}, &across);
        for (std::uint64_t update = 0; update < 3; ++update) {
            const auto add = [&](Window<float>& window, std::size_t from) {
                Tensor h =
                    constant(random_uniform<float>({3, 4}, {.seed = 3, .stream = 10 * update + me()}, -1, 1));
                for (std::size_t i = from; i < from + 3; ++i) h = tanh(matmul(h, all[i]));
                window.add({sum(h), constant(Array<float>::full({}, 3))});
            };
            if (me() % 2 == 0) add(one, 0), add(other, 3);
            if (me() % 2 == 1) add(other, 3), add(one, 0);
            one.finish();
            other.finish();
        }
        weights.push_back(all);
    }
    for (std::size_t i = 0; i < 6; ++i) CHECK(same_bits(weights[0][i].value(), weights[1][i].value()));
}

TEST_CASE("Two windows that end in another order on one process are an error, and nothing stays under way") {
    if (ranks() == 1) return;
    std::vector<Tensor> all = Deep::drawn();
    Sgd<float> first({all[0], all[1]}, {.learning_rate = 0.1}),
        second({all[2], all[3]}, {.learning_rate = 0.1});
    Ranks<float> across(world(), {.bucket = 7, .overlap = true});
    Window<float> one(first, {.micro_batches = 1}, &across), other(second, {.micro_batches = 1}, &across);
    const auto add = [&](Window<float>& window, std::size_t from) {
        const Tensor x = constant(random_uniform<float>({3, 4}, {.seed = 4, .stream = me()}, -1, 1));
        window.add({sum(tanh(matmul(tanh(matmul(x, all[from])), all[from + 1]))),
                    constant(Array<float>::full({}, 3))});
    };
    add(one, 0);
    add(other, 2);
    CHECK_THAT(message_of([&] { last() ? other.finish() : one.finish(); }),
               contains("has the window that was opened as number"));
    one.discard();
    other.discard();
    for (Window<float>* window : {&one, &other}) {
        add(*window, window == &one ? 0 : 2);
        CHECK(window->finish().stepped);
    }
    across.expect_same_weights();
}

TEST_CASE("Overlap is for sums in rank order, and the same on all processes") {
    CHECK_THAT(message_of([] { Ranks<float> across(world(), {.reduce = AllReduce::fast, .overlap = true}); }),
               contains("[ranks] overlap needs AllReduce::rank_order"));
    if (ranks() == 1) return;
    CHECK_THAT(message_of([] { Deep deep(last()); }),
               contains("rank " + std::to_string(ranks() - 1) + " has overlap yes, rank 0 has no"));
}

}  // namespace tally::test
