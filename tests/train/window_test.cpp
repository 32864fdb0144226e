// Tests that a Window computes the gradient of the full batch for every split of the batch. Also tests
// incomplete windows, infinite values, NaN and invalid calls.
#include "tally/train/window.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "../lessons/accumulate.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/base/random.hpp"

namespace tally::test {

namespace {

using lesson::Accumulate;

// Generates a random two-layer network, data and a kind of loss. loss() returns the loss of the given rows.
struct RandomProblem {
    std::vector<Tensor64> parameters;
    Array<double> x, target, weights;
    Array<std::int32_t> labels;
    std::int64_t rows;
    int kind;  // 0: mean squares; 1: masked cross-entropy; 2: weighted squares

    explicit RandomProblem(Random& r) : rows(r.whole(1, 12)), kind(static_cast<int>(r.whole(0, 2))) {
        const std::int64_t in = r.whole(1, 5), hidden = r.whole(1, 6), out = r.whole(2, 4);
        parameters = {parameter(r.array<double>({in, hidden})), parameter(r.array<double>({hidden})),
                      parameter(r.array<double>({hidden, out})), parameter(r.array<double>({out}))};
        x = r.array<double>({rows, in});
        target = r.array<double>({rows, out});
        weights = r.array<double>({rows, 1}, 0.1, 3);
        std::vector<std::int32_t> all{0};  // the first row is never masked, so the count is not 0
        while (static_cast<std::int64_t>(all.size()) < rows)
            all.push_back(r.whole(0, 2) == 0 ? -100 : static_cast<std::int32_t>(r.whole(0, out - 1)));
        labels = Array<std::int32_t>({rows}, all);
    }

    Loss<Array<double>> loss(std::int64_t from, std::int64_t to) const {
        const Tensor64 y =
            linear(tanh(linear(Tensor64(x.slice_rows(from, to)), parameters[0], parameters[1])),
                   parameters[2], parameters[3]);
        if (kind == 1) return cross_entropy(y, labels.slice_rows(from, to));
        if (kind == 0) return mse(y, Tensor64(target.slice_rows(from, to)));
        const Tensor64 weight = weights.slice_rows(from, to);
        const Tensor64 out(Array<double>::full({}, static_cast<double>(y.shape()[1])));
        return {sum(detail::squared_difference(y, Tensor64(target.slice_rows(from, to))) * weight),
                sum(weight) * out};
    }
};

// Returns random boundaries of consecutive micro-batches, which may be unequal or empty.
std::vector<std::int64_t> random_split(Random& r, std::int64_t rows) {
    std::vector<std::int64_t> at{0, rows};
    for (std::int64_t more = r.whole(0, 5); more-- > 0;) at.push_back(r.whole(0, rows));
    std::sort(at.begin(), at.end());
    return at;
}

double largest(const std::vector<double>& x) {
    double most = 0;
    for (double each : x) most = std::max(most, std::abs(each));
    return most;
}

std::string first_difference(const std::vector<double>& got, const std::vector<double>& want) {
    const double bound = 1e-12 * (1 + largest(want));
    for (std::size_t i = 0; i < want.size(); ++i)
        if (!(std::abs(got[i] - want[i]) <= bound))
            return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
                   std::to_string(want[i]);
    return got.size() == want.size() ? "" : "another size";
}

}  // namespace

TEST_CASE("invariant 12: the window's gradient equals the full batch's gradient for every split") {
    for (std::uint64_t seed = 0; seed < 1200; ++seed) {
        Random r(seed);
        const RandomProblem problem(r);
        const auto at = random_split(r, problem.rows);
        const std::size_t parts = at.size() - 1;
        const Reduction reduction = r.whole(0, 3) == 0 ? Reduction::sum : Reduction::mean;
        std::vector<double> weights(parts, 1);  // weight of the items of each micro-batch
        if (r.whole(0, 3) == 0)
            for (double& weight : weights) weight = r.between(0.1, 3);
        // The expected gradient is computed with one graph, in which each part has a weight.
        Tensor64 sum = problem.loss(0, 0).sum * 0;
        double total = 0;
        for (std::size_t i = 0; i < parts; ++i) {
            const auto part = problem.loss(at[i], at[i + 1]);
            sum = sum + part.sum * weights[i];
            total += part.count.item() * weights[i];
        }
        if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; }))
            // If no weights are given, the gradient of the loss of all items is the expected gradient.
            sum = problem.loss(0, problem.rows).sum;
        std::vector<std::vector<double>> want, before;
        for (const Array<double>& each :
             grad(reduction == Reduction::sum ? sum : sum / total, problem.parameters))
            want.push_back(each.to_vector());
        for (const Tensor64& p : problem.parameters) before.push_back(p.value().to_vector());

        const bool known = reduction == Reduction::mean && r.coin();
        INFO("seed " << seed << ", kind " << problem.kind << ", " << problem.rows << " rows in " << parts
                     << " parts" << (known ? ", total known" : "")
                     << (reduction == Reduction::sum ? ", sum" : ""));
        Sgd<double> optimizer(problem.parameters, {.learning_rate = 1});
        Window<double> window(optimizer, {.micro_batches = static_cast<std::int64_t>(parts),
                                          .total = known ? total : 0,
                                          .reduction = reduction});
        for (std::size_t i = 0; i < parts; ++i)
            window.add(problem.loss(at[i], at[i + 1]), {.weight = weights[i]});
        REQUIRE(window.full());
        const auto done = window.finish();
        REQUIRE(done.stepped);
        CHECK(std::abs(done.loss() - sum.item() / total) <= 1e-12 * (1 + std::abs(done.loss())));
        for (std::size_t p = 0; p < want.size(); ++p) {
            for (std::size_t i = 0; i < want[p].size(); ++i)
                want[p][i] = before[p][i] - want[p][i];  // the learning rate is 1
            REQUIRE(first_difference(problem.parameters[p].value().to_vector(), want[p]) == "");
        }
    }
}

TEST_CASE("invariant 12: trajectories of windows follow the full batch for every split") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Random r(seed);
        const RandomProblem problem(r);
        std::vector<Tensor64> cut_parameters;
        for (const Tensor64& p : problem.parameters) cut_parameters.push_back(parameter(p.value().clone()));
        RandomProblem cut_problem = problem;
        cut_problem.parameters = cut_parameters;
        const Sgd<double>::Options options{.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.01};
        Sgd<double> whole(problem.parameters, options), cut(cut_parameters, options);
        Window<double> one(whole, {.max_norm = 1.0}), many(cut, {.max_norm = 1.0});
        for (int update = 0; update < 12; ++update) {
            one.add(problem.loss(0, problem.rows));
            const auto at = random_split(r, problem.rows);
            for (std::size_t i = 1; i < at.size(); ++i) many.add(cut_problem.loss(at[i - 1], at[i]));
            const auto a = one.finish(), b = many.finish();
            CHECK(std::abs(a.loss() - b.loss()) <= 1e-12 * (1 + std::abs(a.loss())));
        }
        INFO("seed " << seed);
        for (std::size_t p = 0; p < cut_parameters.size(); ++p)
            REQUIRE(first_difference(cut_parameters[p].value().to_vector(),
                                     problem.parameters[p].value().to_vector()) == "");
    }
}

namespace {

// Defines a model with one weight. The gradient of the weight is the mean of the items.
struct One {
    Tensor64 w = parameter({1.0});
    Sgd<double> sgd{{w}, {.learning_rate = 1}};
    Loss<Array<double>> loss(std::vector<double> x) const {
        const Tensor64 data(Array<double>({static_cast<std::int64_t>(x.size())}, x));
        return Loss(w * data);
    }
    double gradient_of_step(double before = 1) const { return before - w.value().item(); }
};

}  // namespace

TEST_CASE("Window: with an announced total the gradient has the full batch's bits on the ordered kernel") {
    Random r(3);
    for (const std::int64_t b : {1, 2, 4, 8, 16}) {
        const Array<float> x = r.array<float>({16, 5});
        const Tensor w = parameter(Array<float>::full({5, 3}, 0.25f)), same = parameter(w.value().clone());
        const auto loss = [](const Tensor& data, const Tensor& weights) {
            return Loss(matmul(data, weights));
        };
        loss(x, same).mean().backward();
        Sgd<float> sgd({w}, {.learning_rate = 1});
        Window<float> window(sgd, {.micro_batches = 16 / b, .total = 48});
        for (const Tensor& micro : split(Tensor(x), b)) window.add(loss(micro, w));
        CHECK(same_bits(w.grad(), same.grad()));
    }
}

TEST_CASE("Window: a count that first_difference from the total by rounding does not scale the gradient") {
    const Tensor w = parameter<float>({0.3f, -0.7f, 1.1f}), same = parameter<float>({0.3f, -0.7f, 1.1f});
    Sgd<float> sgd({w}, {.learning_rate = 0.1});
    Window<float> window(sgd, {.total = 0.3});
    for (int micro = 0; micro < 3; ++micro) {
        window.add(Loss<Array<float>>{sum(w * w), Array<float>::full({}, 1)}, {.weight = 0.1});
        (sum(same * same) * 0.1 / 0.3).backward();
    }
    const auto done = window.finish();
    REQUIRE(done.count != 0.3);
    Sgd<float>({same}, {.learning_rate = 0.1}).step();
    CHECK(w.value().to_vector() == same.value().to_vector());
}

TEST_CASE("Tail: an incomplete window is scaled, dropped or carried") {
    for (const bool known : {false, true}) {
        const auto after_tail = [&](Tail tail) {
            One one;
            Window<double> window(one.sgd, {.micro_batches = 3, .total = known ? 6.0 : 0.0, .tail = tail});
            window.add(one.loss({1, 2}));
            window.add(one.loss({6, 3}));
            const auto done = window.flush();
            CHECK(done.stepped == (tail == Tail::scale));
            CHECK(window.micro_batches() == (tail == Tail::carry ? 2 : 0));
            if (tail == Tail::carry) {  // the next epoch completes the window
                window.add(one.loss({0, 0}));
                CHECK(window.finish().stepped);
            }
            CHECK_FALSE(window.flush().stepped);  // now the window is empty
            return one.gradient_of_step();
        };
        CHECK(after_tail(Tail::scale) == 3);
        CHECK(after_tail(Tail::drop) == 0);
        CHECK(after_tail(Tail::carry) == 2);
    }
}

TEST_CASE("Weigh, Reduction: micro-batches may have equal weights, and sums are not divided") {
    const auto step = [](Window<double>::Options options) {
        One one;
        Window<double> window(one.sgd, options);
        window.add(one.loss({1, 2, 3, 6}));
        window.add(one.loss({9}));
        window.add(one.loss({}));  // this micro-batch is empty
        window.finish();
        return one.gradient_of_step();
    };
    CHECK(std::abs(step({}) - 21.0 / 5) < 1e-15);
    CHECK(std::abs(step({.weigh = Weigh::micro_batches}) - (3.0 + 9) / 2) < 1e-15);
    CHECK(step({.reduction = Reduction::sum}) == 21);
    One one;
    Window<double> window(one.sgd);
    window.add(one.loss({1, 2}), {.weight = 3});
    window.add(one.loss({5}), {.weight = 1});
    window.finish();
    CHECK(std::abs(one.gradient_of_step() - (3 * 3 + 5.0) / 7) < 1e-15);
}

TEST_CASE("Window::add_regularizer: the term counts once per update") {
    for (const double total : {0.0, 4.0}) {
        One one;
        Window<double> window(one.sgd, {.total = total});
        window.add_regularizer(sum(one.w * one.w) * 0.5);
        window.add(one.loss({1, 2}));
        window.add(one.loss({3, 6}));
        window.finish();
        CHECK(one.gradient_of_step() == 3 + 1);  // the gradient of the regularizer is w
    }
}

TEST_CASE("NonFinite: a non-finite gradient throws an Error, or drops its micro-batch or its window") {
    const double inf = std::numeric_limits<double>::infinity();
    const auto run = [&](NonFinite policy, double total, auto then) {
        One one;
        Window<double> window(one.sgd, {.total = total, .non_finite = policy});
        window.add(one.loss({1, 2}));
        window.add(one.loss({inf, 2}));
        window.add(one.loss({5, 4}));
        then(one, window);
    };
    for (const double total : {0.0, 6.0}) {
        run(NonFinite::drop_micro, total, [](const One& one, Window<double>& window) {
            const auto done = window.finish();
            CHECK(done.dropped == 1);
            CHECK(done.count == 4);
            CHECK(std::abs(one.gradient_of_step() - 3) < 1e-15);
        });
        run(NonFinite::drop_window, total, [](const One& one, Window<double>& window) {
            CHECK_FALSE(window.finish().stepped);
            CHECK(one.gradient_of_step() == 0);
            window.add(one.loss({2, 2, 2, 2, 2, 2}));
            CHECK(window.finish().stepped);
        });
        run(NonFinite::raise, total, [](const One& one, Window<double>& window) {
            CHECK_THROWS_WITH(window.finish(), contains("1 elements of the gradients are infinite or NaN"));
            CHECK(one.gradient_of_step() == 0);
            CHECK_THROWS_WITH(window.finish(), contains("discard() the window"));
            CHECK_THROWS_WITH(window.add(one.loss({1})), contains("discard() the window"));
            window.discard();
            window.add(one.loss({2, 2, 2, 2, 2, 2}));
            CHECK(window.finish().stepped);
        });
    }
}

TEST_CASE("Window: an infinite norm of finite gradients skips the step") {
    One one;
    Window<double> window(one.sgd, {.non_finite = NonFinite::drop_window, .max_norm = 1});
    window.add(one.loss({1e200}));
    CHECK_FALSE(window.finish().stepped);
    CHECK(one.gradient_of_step() == 0);
    window.add(one.loss({1e100}));
    CHECK(window.finish().stepped);
    CHECK(one.gradient_of_step() == 1);
}

TEST_CASE("NonFinite: a dropped first micro-batch leaves no gradient") {
    One one;
    Window<double> window(one.sgd, {.non_finite = NonFinite::drop_micro});
    window.add(one.loss({std::nan("")}));
    CHECK_FALSE(one.w.has_grad());
    window.add(one.loss({4}));
    CHECK(window.finish().count == 1);
    CHECK(one.gradient_of_step() == 4);
    window.add(one.loss({std::nan("")}));
    const auto done = window.finish();  // all micro-batches were dropped
    CHECK_FALSE(done.stepped);
    CHECK(done.dropped == 1);
}

TEST_CASE("Window: invalid options and calls throw an Error") {
    One one;
    (one.w * 2).backward();
    CHECK_THROWS_WITH(
        Window<double>(one.sgd),
        "[window] parameter 0 of (1) has a gradient before the first micro-batch; call zero_grad() first");
    one.w.zero_grad();
    CHECK_THROWS_WITH(Window<double>(one.sgd, {.micro_batches = -1}), contains("-1 micro-batches"));
    CHECK_THROWS_WITH(Window<double>(one.sgd, {.total = -2}), contains("total cannot be -2"));
    CHECK_THROWS_WITH(Window<double>(one.sgd, {.total = 2, .reduction = Reduction::sum}),
                      contains("does not divide"));

    Window<double> window(one.sgd, {.micro_batches = 2, .total = 4});
    CHECK_THROWS_WITH(window.finish(), "[window] finish: no micro-batch was added");
    window.add(one.loss({1}));
    CHECK_THROWS_WITH(one.sgd.step(),
                      contains("[step] a window is open, with micro-batches in it, and parameter 0 of (1)"));
    window.add(one.loss({1, 2}));
    CHECK_THROWS_WITH(window.finish(), contains("total is 4, but the sum of the counts is 3 after 2 micro-"));
    window.discard();
    CHECK_NOTHROW(one.sgd.step());  // discard() has emptied the window
    (one.w * 2).backward();
    CHECK_THROWS_WITH(window.add(one.loss({1})), contains("before the first micro-batch"));
    one.w.zero_grad();
    CHECK_THROWS_WITH(window.add(one.loss({1}), {.weight = -1}), contains("cannot have the weight -1"));

    Window<double> unknown(one.sgd);
    unknown.add(one.loss({}));
    CHECK_THROWS_WITH(unknown.finish(), contains("micro-batches are 0"));
    unknown.discard();
}

TEST_CASE("Window::finish: clipping, schedule and average are applied once per update") {
    One one;
    std::vector<double> rates;
    MovingAverage<double> average({one.w}, {.decay = 0.5});
    Window<double> window(
        one.sgd,
        {.micro_batches = 4, .max_value = 2.0, .schedule = Schedule::step(1, 1, 0.5), .average = &average});
    for (int i = 0; i < 8; ++i) {
        window.add(one.loss({5}));
        if (window.full()) {
            window.finish();
            rates.push_back(one.sgd.learning_rate());
        }
    }
    CHECK(rates == std::vector<double>{1, 0.5});
    CHECK(one.w.value().item() == 1 - 2 * 1 - 2 * 0.5);
    CHECK(average.updates() == 2);
    CHECK(window.updates() == 2);
}

TEST_CASE("Window: averages that are swapped in throw an Error before anything changes") {
    const Tensor64 w = parameter<double>({1, -2});
    Adam<double> adam({w}, {.learning_rate = 0.1});
    MovingAverage<double> average({w}, {.decay = 0.5});
    Window<double> window(adam, {.schedule = Schedule::step(1, 1, 0.5), .average = &average});
    const auto state = [&] {
        std::vector<double> all = w.value().to_vector();
        TrainingState saved;
        adam.save(saved, "adam");
        for (const auto& [name, entry] : saved.entries()) {
            if (const auto* array = std::get_if<Array<double>>(&entry))
                for (const double number : array->to_vector()) all.push_back(number);
            if (const auto* count = std::get_if<std::int64_t>(&entry))
                all.push_back(static_cast<double>(*count));
        }
        all.push_back(adam.learning_rate());
        return all;
    };
    const auto add = [&] { window.add(Loss(w * w)); };
    add();
    window.finish();
    average.swap();
    const std::vector<double> before = state();
    CHECK_THROWS_WITH(add(), "[window] parameter 0 holds the numbers of a moving average; swap() back first");
    CHECK(state() == before);
    CHECK(window.updates() == 1);
    window.discard();
    average.swap();
    add();
    CHECK(window.finish().stepped);
    CHECK(average.updates() == 2);
}

TEST_CASE("Accumulate: it steps at every N-th call, with the mean or the sum of the gradients") {
    for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {
        One one;
        Accumulate<double> wrapped(one.sgd, 4, reduction);
        CHECK(wrapped.announcement() == "Wrapping 'SGD' optimizer with GA of 4 steps");
        std::string stepped;
        for (const double x : {1, 2, 3, 6, 7, 9}) {
            one.loss({x}).sum.backward();
            stepped += wrapped.step(1) ? '+' : '-';
        }
        CHECK(stepped == "---+--");
        CHECK(one.gradient_of_step() == (reduction == Reduction::mean ? 3 : 12));
        CHECK(wrapped.flush());
        CHECK(one.gradient_of_step() == (reduction == Reduction::mean ? 3 + 8 : 12 + 16));
        CHECK_FALSE(wrapped.flush());
    }
}

TEST_CASE("Trainer::AccumulationSteps: the number of micro-batches may change with the epoch") {
    const detail::AccumulationSteps steps({{0, 8}, {4, 2}});
    std::vector<std::int64_t> each;
    for (int epoch = 0; epoch < 5; ++epoch) each.push_back(steps.at(epoch));
    CHECK(each == std::vector<std::int64_t>{8, 8, 8, 8, 2});
    CHECK(detail::AccumulationSteps(4).at(100) == 4);
    CHECK(detail::AccumulationSteps({{3, 5}}).at(2) == 1);
    CHECK_THROWS_WITH(detail::AccumulationSteps(std::map<std::int64_t, std::int64_t>{}),
                      contains("no steps are given"));
    CHECK_THROWS_WITH(detail::AccumulationSteps(0), contains("at least one micro-batch; from epoch 0 on 0"));
    CHECK_THROWS_WITH(detail::AccumulationSteps({{0, 2}, {1, -3}}), contains("from epoch 1 on -3"));
    CHECK_THROWS_WITH(detail::AccumulationSteps({{-1, 2}}),
                      contains("epochs are numbered from 0; -1 is not one"));
}

}  // namespace tally::test
