// Tests Sum::exact over processes. Gradients must have the same bits for every distribution of micro-batches.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

template <class S> using Leaves = std::vector<Var<Array<S>>>;
const std::string no_error = "no error";

// Generates random numbers of all magnitudes, including 0, -0, denormal numbers and numbers that cancel.
template <class S> class NumberGenerator {
public:
    NumberGenerator(Random& r, bool special, bool zeros = false) : r_(r), special_(special), zeros_(zeros) {}

    S number() {
        using Limits = std::numeric_limits<S>;
        if (zeros_) return r_.whole(0, 15) == 0 ? S(0) : S(-0.0);
        constexpr int far = Limits::max_exponent - 30;
        S x = static_cast<S>(r_.between(-1, 1));
        switch (r_.whole(0, 9)) {
            case 0:
                x = r_.coin() ? S(0) : S(-0.0);
                break;
            case 1:
                x = std::ldexp(x, Limits::min_exponent - static_cast<int>(r_.whole(0, 20)));
                break;
            case 2:
            case 3:
                x = std::ldexp(x, static_cast<int>(r_.whole(-far, far)));
                break;
            case 4:
            case 5:
                if (!drawn_.empty()) x = -drawn_[index(drawn_.size())];
                break;
            case 6:
                constexpr S specials[] = {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                                          Limits::max(), Limits::lowest()};
                if (special_ && r_.whole(0, 9) == 0) x = specials[index(5)];
        }
        drawn_.push_back(x);
        return x;
    }
    Array<S> array(const Shape& shape) {
        std::vector<S> numbers(shape.size());
        const bool one_by_one = r_.coin();  // otherwise all numbers are equal, for example -0
        S all = number();
        for (S& each : numbers) each = one_by_one ? number() : all;
        return Array<S>(shape, numbers);
    }
    std::size_t index(std::size_t size) {
        return static_cast<std::size_t>(r_.whole(0, static_cast<std::int64_t>(size) - 1));
    }

private:
    Random& r_;
    bool special_, zeros_;
    std::vector<S> drawn_;
};

template <class S> struct Results {
    std::vector<Array<S>> arrays;  // gradients and weights
    std::vector<double> numbers;
    std::vector<std::string> errors;

    // Describes the first difference from `other`. Returns "" if all results are equal.
    std::string difference(const Results& other) const {
        for (std::size_t i = 0; i < errors.size(); ++i)
            if (errors[i] != other.errors[i]) return errors[i] + ", alone " + other.errors[i];
        for (std::size_t i = 0; i < numbers.size(); ++i)
            if (std::bit_cast<std::uint64_t>(numbers[i]) != std::bit_cast<std::uint64_t>(other.numbers[i]))
                return "number " + std::to_string(i) + ": " + std::to_string(numbers[i]) + ", alone " +
                       std::to_string(other.numbers[i]);
        for (std::size_t i = 0; i < arrays.size(); ++i)
            if (!same_bits(arrays[i], other.arrays[i])) return "array " + std::to_string(i);
        return "";
    }
};

// Generates random parameters of a linear model, the micro-batches of a window, and the window's options.
template <class S> struct RandomWindow {
    std::vector<Array<S>> values;
    struct Micro {
        std::vector<Array<S>> with;  // factor of each parameter, or empty if the loss ignores the parameter
        S constant_part;             // the part of the loss that depends on no parameter
        double count, weight;
    };
    std::vector<Micro> micros;
    typename Window<S>::Options options{.sum = Sum::exact};
    std::size_t bucket;
    bool adam;

    explicit RandomWindow(Random& r) {
        NumberGenerator<S> generator(r, r.whole(0, 3) == 0);
        for (std::int64_t n = r.whole(1, 3); n-- > 0;) values.push_back(r.array<S>(r.shape(2, 4)));
        double total = 0;
        const bool weighted = r.coin();
        for (std::int64_t m = r.whole(1, 7); m-- > 0;) {
            Micro micro{
                {}, generator.number(), static_cast<double>(r.whole(1, 5)), weighted ? r.between(0.1, 3) : 1};
            for (const Array<S>& value : values)
                micro.with.push_back(r.whole(0, 3) == 0 ? Array<S>() : generator.array(value.shape()));
            if (!micro.with[0].storage()) micro.with[0] = generator.array(values[0].shape());
            micros.push_back(micro);
            total += micro.count * micro.weight;
        }
        if (r.whole(0, 3) == 0)
            options.reduction = Reduction::sum;
        else if (r.whole(0, 2) == 0)
            options.total = total;
        else if (r.whole(0, 2) == 0)
            options.weigh = Weigh::micro_batches;
        if (r.whole(0, 3) == 0) options.max_norm = r.between(0.01, 2);
        if (r.whole(0, 3) == 0) options.max_value = r.between(0.01, 1);
        options.non_finite =
            std::vector{NonFinite::raise, NonFinite::drop_micro, NonFinite::drop_window}[generator.index(3)];
        bucket = static_cast<std::size_t>(r.whole(7, 200));
        adam = r.coin();
    }

    Leaves<S> leaves() const {
        Leaves<S> all;
        for (const Array<S>& value : values) all.push_back(parameter(value.clone()));
        return all;
    }
    static Loss<Array<S>> loss(const Leaves<S>& leaves, const Micro& micro) {
        Var<Array<S>> all = constant(Array<S>::full({}, micro.constant_part));
        for (std::size_t i = 0; i < leaves.size(); ++i)
            if (micro.with[i].storage()) all = all + sum(leaves[i] * constant(micro.with[i]));
        return {all, constant(Array<S>::full({}, static_cast<S>(micro.count)))};
    }

    // Makes two updates with the micro-batches `mine`.
    Results<S> updated(const std::vector<std::size_t>& mine, detail::GradientReducer<S>* across) const {
        const Leaves<S> own = leaves();
        std::unique_ptr<Optimizer<S>> optimizer;
        if (adam)
            optimizer = std::make_unique<Adam<S>>(own);
        else
            optimizer = std::make_unique<Sgd<S>>(own, Sgd<double>::Options{.learning_rate = 0.25});
        Window<S> window(*optimizer, options, across);
        Results<S> results;
        for (int update = 0; update < 2; ++update) {
            for (const std::size_t i : mine) window.add(loss(own, micros[i]), {.weight = micros[i].weight});
            bool complete = false;  // if false, the gradient may contain parts of dropped micro-batches
            const std::string error = message_of([&] {
                const auto done = window.finish();
                for (const double number :
                     {double(done.stepped), double(done.micro_batches), double(done.dropped), done.count,
                      done.norm.value_or(-1), static_cast<double>(done.loss_sum.item())})
                    results.numbers.push_back(number);
                complete = done.stepped && done.dropped == 0;
            });
            if (error != no_error) window.discard();
            results.errors.push_back(error);
            for (std::size_t i = 0; i < own.size(); ++i) {
                const auto reads = [i](const Micro& micro) { return micro.with[i].storage() != nullptr; };
                if (complete && std::ranges::any_of(micros, reads))
                    results.arrays.push_back(own[i].node()->gradient.clone());
                results.arrays.push_back(own[i].value().clone());
            }
        }
        return results;
    }
};

// Distributes the micro-batches to the processes at random. Returns the micro-batches of this process.
std::vector<std::size_t> drawn_share(Random& r, std::size_t micros) {
    const auto last = static_cast<std::int64_t>(ranks()) - 1, few = r.whole(0, last);
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < micros; ++i)
        if (static_cast<std::size_t>(r.coin() ? r.whole(0, last) : few) == me()) mine.push_back(i);
    if (r.coin()) std::reverse(mine.begin(), mine.end());
    return mine;
}

// Counts how the updates end, because the test requires that every kind of outcome occurs.
struct Outcomes {
    int stepped = 0, rejected = 0, dropped = 0, without = 0;
};

template <class S> void check_update(std::uint64_t seed, Outcomes& outcomes) {
    Random r(seed);
    const RandomWindow<S> drawn(r);
    CAPTURE(seed, world().size(), drawn.bucket, drawn.micros.size());
    std::vector<std::size_t> all(drawn.micros.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    const Results<S> alone = drawn.updated(all, nullptr);
    for (int share = 0; share < 2; ++share) {
        const std::vector<std::size_t> mine = drawn_share(r, drawn.micros.size());
        DataParallel<S> across(world(), {.bucket = drawn.bucket});
        CHECK(drawn.updated(mine, &across).difference(alone) == "");
        outcomes.without += mine.empty();
    }
    if (alone.errors[0] == no_error)
        outcomes.stepped += alone.numbers[0] == 1, outcomes.dropped += alone.numbers[2] > 0;
    else
        ++outcomes.rejected;
}

// The exact sums of one rank for two parameters, the loss and the number of items.
template <class S> using Sums = std::vector<detail::ExactSum<S>>;
const std::vector<Shape> summed_shapes{{3}, {2, 7}, {}, {}};

template <class S> Sums<S> drawn_sums(Random& r, bool zeros) {
    NumberGenerator<S> generator(r, true, zeros);
    Sums<S> sums;
    for (const Shape& shape : summed_shapes) {
        detail::ExactSum<S> sum(shape);
        for (std::int64_t n = r.whole(0, 4); n-- > 0;) sum.add(generator.array(shape));
        if (r.whole(0, 3) == 0) {  // the sum has nearly the maximum number of additions
            detail::ExactSum<S> other(shape);
            other.add(generator.array(shape));
            other.add(generator.array(shape));
            while (sum.additions() + other.additions() <= detail::ExactSum<S>::most_additions) {
                sum.merge(other);
                std::swap(sum, other);
            }
        }
        sums.push_back(std::move(sum));
    }
    return sums;
}

template <class S> void check_sums(std::uint64_t seed) {
    Random r(seed);
    const Leaves<S> leaves{parameter(Array<S>::zeros(summed_shapes[0])),
                           parameter(Array<S>::zeros(summed_shapes[1]))};
    Sgd<S> sgd(leaves, {.learning_rate = 1});
    DataParallel<S> across(world(), {.bucket = static_cast<std::size_t>(r.whole(1, 300))});
    across.open(sgd, {});
    CAPTURE(seed, world().size());
    const bool zeros = r.whole(0, 3) == 0;  // a sum is -0 only if all summands are -0
    Sums<S> expected, mine;
    for (const Shape& shape : summed_shapes) expected.emplace_back(shape);
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
        Sums<S> sums = drawn_sums<S>(r, zeros);
        for (std::size_t i = 0; i < sums.size(); ++i) expected[i].merge(sums[i]);
        if (rank == me()) mine = std::move(sums);
    }
    const Array<S> own_loss = mine[2].rounded();
    const detail::WindowTotals all = across.gather(sgd, "finish", 0, {}, mine);
    const auto as_scalar = [](double number) { return Array<S>::full({}, static_cast<S>(number)); };
    CHECK(same_bits(as_scalar(all.loss_sum), expected[2].rounded()));
    CHECK(same_bits(as_scalar(all.count), expected[3].rounded()));
    CHECK(same_bits(mine[2].rounded(), own_loss));
    detail::SideEffects none;
    across.reduce(none, mine);
    for (std::size_t i = 0; i < mine.size(); ++i) {
        CHECK(mine[i].empty() == expected[i].empty());
        CHECK(same_bits(mine[i].rounded(), expected[i].rounded()));
        mine[i].add(Array<S>::full(summed_shapes[i], S(-0.0)));  // the sum accepts more additions
        expected[i].add(Array<S>::full(summed_shapes[i], S(-0.0)));
        CHECK(same_bits(mine[i].rounded(), expected[i].rounded()));
    }
    across.barrier_before_step();
}

// A model with one weight. A test chooses the gradient and the loss of each micro-batch.
struct One {
    Tensor weight;
    Sgd<float> sgd;
    DataParallel<float> across{world()};
    Window<float> window;

    One(float begin, Window<float>::Options options)
        : weight(parameter(Array<float>({begin}))),
          sgd({weight}, {.learning_rate = 1}),
          window(sgd, options, &across) {}
    void add(float gradient, float constant_part = 0, float count = 1) {
        window.add({sum(weight * constant(Array<float>({gradient}))) +
                        constant(Array<float>::full({}, constant_part)),
                    constant(Array<float>::full({}, count))});
    }
};

bool last() { return me() + 1 == ranks(); }

}  // namespace

TEST_CASE("Sum::exact: an update has the bits of one process for every distribution of micro-batches") {
    const std::uint64_t seed = common_seed("exact updates");
    CAPTURE(seed);
    Outcomes outcomes;
    const std::uint64_t cases = ranks() == 1   ? 100
                                : ranks() == 2 ? 90
                                : ranks() == 3 ? 60
                                               : 40;  // 580 cases of both types
    for (std::uint64_t i = 0; i < cases; ++i) {
        check_update<float>(seed + 2 * i, outcomes);
        check_update<double>(seed + 2 * i + 1, outcomes);
    }
    CHECK(outcomes.stepped > static_cast<int>(cases));
    CHECK(outcomes.rejected + outcomes.dropped > 0);
    CHECK((outcomes.without > 0 || ranks() == 1));
}

TEST_CASE("Sum::exact: sums over processes equal one sum of all numbers, for any number of additions") {
    const std::uint64_t seed = common_seed("exact sums");
    for (std::uint64_t i = 0; i < 40; ++i) {
        check_sums<float>(seed + 2 * i);
        check_sums<double>(seed + 2 * i + 1);
    }
}

TEST_CASE("Sum::exact: a million infinities of one sign are an infinity, and of both signs NaN") {
    constexpr float inf = std::numeric_limits<float>::infinity();
    for (const bool both : {false, true}) {
        One one(0, {});
        Sums<float> sums;
        sums.emplace_back(Shape{1});
        sums.emplace_back(Shape{});
        sums.emplace_back(Shape{});
        detail::ExactSum<float> other(Shape{1});
        const Array<float> mine({both && last() && ranks() > 1 ? -inf : inf});
        other.add(mine);
        while (sums[0].additions() + other.additions() <= detail::ExactSum<float>::most_additions) {
            sums[0].merge(other);
            std::swap(sums[0], other);
        }
        one.across.gather(one.sgd, "finish", 0, {}, sums);
        detail::SideEffects none;
        one.across.reduce(none, sums);
        const float all = sums[0].rounded().item();
        CHECK((both && ranks() > 1 ? std::isnan(all) : all == inf));
        CHECK(sums[0].additions() <= detail::ExactSum<float>::most_additions);
    }
}

TEST_CASE("Sum::exact: losses, counts and gradients that one process would round away are kept") {
    // Each process adds 2^30 or -2^30, and then 1. At most one 2^30 does not cancel in the sum.
    One one(0, {.reduction = Reduction::sum, .sum = Sum::exact});
    const float sign = me() % 2 == 0 ? 1 : -1;
    one.add(sign * 0x1p30F, sign * 0x1p30F, 0x1p24F);
    one.add(1, 1, 1);
    const auto done = one.window.finish();
    const double n = static_cast<double>(ranks()), odd = ranks() % 2 == 1 ? 0x1p30 : 0;
    CHECK(done.loss_sum.item() == static_cast<float>(odd + n));
    CHECK(one.weight.value().item() == -static_cast<float>(odd + n));
    CHECK(done.count == static_cast<double>(static_cast<float>(n * 0x1p24 + n)));
}

TEST_CASE("Sum::exact: a window sends 8 bytes per digit once, and micro-batches send nothing") {
    for (const int micros : {1, 6}) {
        Linear<float> model(7, 3, {1, 0});
        Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
        DataParallel<float> across(world());
        Window<float> window(sgd, {.sum = Sum::exact}, &across);
        const detail::CommStats before = world().sent();
        for (int micro = 0; micro < micros; ++micro)  // gradients 1 and 2, and two scalars
            window.add({sum(model.weight) + sum(model.bias) * 2, constant(Array<float>::full({}, 1))});
        CHECK(world().sent().sum_bytes == before.sum_bytes);
        CHECK(world().sent().gathered_bytes == before.gathered_bytes);
        const std::size_t expected = [&] {
            detail::ExactSum<float> one(Shape{}), two(Shape{}), loss(Shape{}), count(Shape{});
            for (std::size_t i = 0; i < static_cast<std::size_t>(micros) * ranks(); ++i) {
                one.add(Array<float>::full({}, 1));
                two.add(Array<float>::full({}, 2));
                loss.add((sum(model.weight) + sum(model.bias) * 2).value());
                count.add(Array<float>::full({}, 1));
            }
            return 21 * one.bytes() + 3 * two.bytes() + loss.bytes() + count.bytes();
        }();
        window.finish();
        CHECK(world().sent().sum_bytes - before.sum_bytes == (ranks() > 1 ? expected : 0));
        CHECK(world().sent().sums - before.sums == (ranks() > 1 ? 1 : 0));
    }
}

TEST_CASE("Tail: an incomplete window of exact sums is dropped, or kept and completed later") {
    const auto options = [](Tail tail) {
        return Window<float>::Options{
            .micro_batches = 2, .reduction = Reduction::sum, .sum = Sum::exact, .tail = tail};
    };
    One dropped(1, options(Tail::drop));
    dropped.add(0.25F);
    if (!last()) dropped.add(0.5F);
    CHECK(!dropped.window.finish().stepped);
    CHECK(dropped.weight.value().item() == 1);

    One carried(0, options(Tail::carry));
    // Later losses cancel 2^30. Only an exact sum still contains the loss 1.
    carried.add(1, 1);
    if (!last()) carried.add(0x1p-30F, 0x1p30F);
    for (int tries = 0; tries < 2; ++tries) {
        const auto open = tries ? carried.window.flush() : carried.window.finish();
        CHECK(!open.stepped);
        CHECK(open.micro_batches == static_cast<std::int64_t>(2 * ranks() - 1));
        CHECK(carried.window.micro_batches() == (last() ? 1 : 2));
    }
    if (last()) carried.add(-0x1p-30F * static_cast<float>(ranks() - 1), -0x1p30F);
    const auto done = carried.window.finish();
    CHECK(done.stepped);
    const auto n = static_cast<double>(ranks());
    CHECK(carried.weight.value().item() == -static_cast<float>(n));
    CHECK(done.loss_sum.item() == static_cast<float>(n + (n - 2) * 0x1p30));
}

TEST_CASE("Window: exact and running sums on different processes throw an Error that names the option") {
    if (ranks() == 1) return;
    const std::string error = message_of([] { One one(0, {.sum = last() ? Sum::exact : Sum::running}); });
    CHECK(error == "[processes] the construction of a Window: rank " + std::to_string(ranks() - 1) +
                       " has option sum exact, rank 0 has running; make them equal on all processes");
    One together(0, {.sum = Sum::exact});  // all processes continue
    together.add(1);
    CHECK(together.window.finish().stepped);
}

TEST_CASE("Sum::exact: if an allocation fails on one process, all throw an Error and none updates") {
    if (ranks() == 1) return;
    int rejected = 0;
    bool finished = false;
    for (std::uint64_t nth = 1; !finished && nth < 100; ++nth) {
        One one(1, {.sum = Sum::exact});
        if (!last()) one.add(0.5F, 3);
        if (last()) memory::detail::fail_allocation(nth);
        const std::string error = message_of([&] { one.window.finish(); });
        memory::detail::fail_allocation(0);
        const bool stepped = error == no_error;
        const auto all = world().all_gather("whether it stepped", stepped ? "yes" : "no");
        CHECK(std::ranges::count(all, all[0]) == std::ssize(all));
        rejected += !stepped;
        finished = stepped;
        if (stepped) continue;
        CHECK(one.weight.value().item() == 1);
        if (!last())
            CHECK_THAT(error,
                       contains("rank " + std::to_string(ranks() - 1) + " has failed at finish of window 0"));
        one.window.discard();
        one.add(0.5F);  // all processes continue
        CHECK(one.window.finish().stepped);
        one.across.require_same_weights();
    }
    CHECK(rejected > 2);
    CHECK(finished);
}

}  // namespace tally::test
