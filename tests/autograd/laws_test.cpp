// Tests relations between operations. The gradients of micro-batches add up to the gradient of the batch,
// exactly or within a bound. A matrix product equals the result of three plain loops.
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/batch_norm.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/layer_norm.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

template <class S> Array<S> toy(bool exact_sums) {
    std::vector<double> rows{0.375, -1.25, 0.5,    -1.125, 0.5,  -0.875, 0.625, 1,
                             -1.5,  -0.25, -0.375, 0.25,   -1.5, 0.75,   -0.625};
    if (exact_sums)
        rows.insert(rows.end(), {-505.0 / 2048, -513.0 / 1024, -5837.0 / 4096});
    else
        rows.insert(rows.end(), {-0.2466, -0.5010, -1.4250});
    return Array<S>({6, 3}, std::vector<S>(rows.begin(), rows.end()), here());
}

// Returns a bound of the relative error of n roundings. The relative error of one rounding is at most u.
template <class S> double gamma(double n) {
    const double u = static_cast<double>(std::numeric_limits<S>::epsilon()) / 2;
    return n * u / (1 - n * u);
}

template <class S>
using Build = Var<Array<S>> (*)(const Var<Array<S>>& x, const std::vector<Var<Array<S>>>& parameters);

// Compares the gradients of the mean loss over all rows with the accumulated gradients of N micro-batches.
// The loss of each micro-batch is divided by N.
template <class S> void expect_equal_bits(const Array<S>& data, const std::vector<Array<S>>& at,
                                          Build<S> build, std::int64_t micro_batches) {
    std::vector<Var<Array<S>>> whole, accumulated;
    for (const auto& value : at) {
        whole.push_back(parameter(value.clone()));
        accumulated.push_back(parameter(value.clone()));
    }
    mean(build(constant(data), whole)).backward();
    for (const auto& micro : split(constant(data), data.shape()[0] / micro_batches))
        (mean(build(micro, accumulated)) / static_cast<double>(micro_batches)).backward();
    for (std::size_t i = 0; i < at.size(); ++i) {
        INFO("parameter " << i << ": " << whole[i].grad() << " and " << accumulated[i].grad());
        CHECK(same_bits(whole[i].grad(), accumulated[i].grad()));
    }
}

template <class S> std::vector<double> in_double(const Array<S>& x) {
    const std::vector<S> numbers = x.to_vector();
    return std::vector<double>(numbers.begin(), numbers.end());
}

}  // namespace

TEMPLATE_TEST_CASE("Law: full batch and divided micro-batches have the same bits on the toy data", "", float,
                   double) {
    for (const bool exact_sums : {false, true}) {
        for (const std::int64_t n : {1, 2, 3, 6}) {
            INFO("N = " << n << (exact_sums ? ", exact sums" : ""));
            expect_equal_bits<TestType>(
                toy<TestType>(exact_sums),
                {Array<TestType>({3}, {TestType(0.5), TestType(-1.25), TestType(0.75)}, here())},
                [](const auto& x, const auto& p) { return matmul(x, p[0]); }, n);
            expect_equal_bits<TestType>(
                toy<TestType>(exact_sums),
                {Array<TestType>({3, 1}, {TestType(0.5), TestType(-1.25), TestType(0.75)}, here())},
                [](const auto& x, const auto& p) { return matmul(x, p[0]); }, n);
        }
    }
}

TEMPLATE_TEST_CASE(
    "Law: micro-batches have the bits of the batch when weights are exact and the ordered kernel runs", "",
    float, double) {
    using S = TestType;
    struct Split {
        std::int64_t n, b;  // n or b is a power of two
    };
    for (const Split split :
         {Split{2, 3}, {3, 2}, {4, 4}, {8, 1}, {1, 16}, {5, 4}, {16, 3}, {7, 1}, {4, 7}}) {
        for (std::uint64_t seed = 0; seed < 8; ++seed) {
            Random random(seed);
            // The CPU adds numbers in the same order for every size and every number of threads.
            const bool large = here() == Device::cpu && seed >= 6;
            const std::int64_t in = large ? random.whole(40, 70) : random.whole(1, 6),
                               out = large ? random.whole(40, 70) : random.whole(1, 6);
            const int threads = large ? static_cast<int>(random.whole(1, 4)) : 1;
            set_threads(threads);
            INFO("N = " << split.n << ", b = " << split.b << ", seed " << seed << ", " << in << " to " << out
                        << ", " << threads << " threads");
            const Array<S> data = random.array<S>({split.n * split.b, in});
            const std::vector<Array<S>> at{random.array<S>({in, out}), random.array<S>({out}),
                                           random.array<S>({out, 2})};
            expect_equal_bits<S>(
                data, at, [](const auto& x, const auto& p) { return linear(matmul(x, p[0]) + p[1], p[2]); },
                split.n);
            expect_equal_bits<S>(
                data, at,
                [](const auto& x, const auto& p) { return matmul(relu(linear(x, p[0], p[1])), p[2]); },
                split.n);
            expect_equal_bits<S>(
                data, at,
                [](const auto& x, const auto& p) { return matmul(matmul(x, p[0]) * p[1], p[2]) * 2; },
                split.n);
            set_threads(1);
        }
    }
}

TEMPLATE_TEST_CASE("Law: adding a gradient in two calls has the bits of one call", "", float, double) {
    using S = TestType;
    Random random(21);
    const Array<S> data = random.array<S>({64, 5});
    const Array<std::int32_t> index = random.integers({64}, 0, 3).to(Device::cpu);
    const auto each_way = [&](const Shape& shape,
                              auto build) {  // the operation reads the parameter directly
        const auto gradient = [&](std::int64_t rows_at_a_time) {
            const auto w = parameter(Array<S>::full(shape, S(0.25), here()));
            for (std::int64_t from = 0; from < 64; from += rows_at_a_time)
                build(w, constant(data.slice_rows(from, from + rows_at_a_time)),
                      index.slice_rows(from, from + rows_at_a_time))
                    .backward();
            return w.grad().clone();
        };
        CHECK(same_bits(gradient(64), gradient(4)));
        CHECK(same_bits(gradient(64), gradient(1)));
    };
    using V = Var<Array<S>>;
    using Index = Array<std::int32_t>;
    each_way({4, 5}, [](const V& w, const V& x, const Index& i) { return sum(rows(w, i) * x); });
    each_way({5}, [](const V& w, const V& x, const Index&) { return sum(w * x); });
    each_way({}, [](const V& w, const V& x, const Index&) { return sum(x / (x * x + 1) - w * x); });
    each_way({1, 5}, [](const V& w, const V& x, const Index&) { return sum(maximum(w, x)); });
    each_way({5}, [](const V& w, const V& x, const Index&) { return sum(broadcast_to(w, x.shape()) * x); });
    each_way({4, 5},
             [](const V& w, const V& x, const Index&) { return sum(matmul(x, w, {.transpose_b = true})); });
    each_way({5, 4}, [](const V& w, const V& x, const Index&) { return sum(tanh(linear(x, w))); });
    each_way({5}, [](const V& w, const V& x, const Index&) {
        return sum(tanh(linear(x, V(Array<S>::full({5, 5}, S(0.1), here())), w)));
    });
}

TEMPLATE_TEST_CASE("Law: large products of micro-batches stay within the rounding bound", "", float, double) {
    using S = TestType;
    Random random(31);
    constexpr std::int64_t rows_in_all = 64, in = 40, out = 48, micro_batches = 4;
    const Array<S> data = random.array<S>({rows_in_all, in}), weight = random.array<S>({rows_in_all, out});
    const auto w = parameter(Array<S>::zeros({in, out}, here()));
    const auto accumulate = [&](std::int64_t n) {
        w.zero_grad();
        const std::int64_t b = rows_in_all / n;
        for (std::int64_t k = 0; k < n; ++k)
            sum(matmul(constant(data.slice_rows(k * b, k * b + b)), w) *
                constant(weight.slice_rows(k * b, k * b + b)))
                .backward();
        return w.grad().clone();
    };
    const auto whole = in_double(accumulate(1)), parts = in_double(accumulate(micro_batches));
    const auto x = in_double(data), g = in_double(weight);
    for (std::size_t i = 0; i < in; ++i) {
        for (std::size_t j = 0; j < out; ++j) {
            double exact = 0, size = 0;
            for (std::size_t r = 0; r < rows_in_all; ++r) {
                exact += x[r * in + i] * g[r * out + j];
                size += std::abs(x[r * in + i] * g[r * out + j]);
            }
            const double bound = gamma<S>(rows_in_all + 2) * size;
            REQUIRE(std::abs(whole[i * out + j] - exact) <= bound + gamma<double>(rows_in_all + 2) * size);
            REQUIRE(std::abs(parts[i * out + j] - whole[i * out + j]) <= 2 * bound);
        }
    }
}

TEST_CASE("Law: every split has the same bits with every kernel when the data are dyadic") {
    Random random(41);
    std::vector<float> values, weights;
    for (int i = 0; i < 64 * 40; ++i) values.push_back(static_cast<float>(random.whole(-8, 8)) / 8);
    for (int i = 0; i < 64 * 48; ++i) weights.push_back(static_cast<float>(random.whole(-8, 8)) / 8);
    const Array<float> x({64, 40}, values, here()), g({64, 48}, weights, here());
    const Tensor w = parameter(Array<float>::zeros({40, 48}, here()));
    Array<float> whole;
    for (const std::int64_t b : {64, 32, 16, 8, 1}) {
        w.zero_grad();
        for (std::int64_t from = 0; from < 64; from += b)
            sum(matmul(constant(x.slice_rows(from, from + b)), w) * constant(g.slice_rows(from, from + b)))
                .backward();
        if (b == 64) whole = w.grad().clone();
        CHECK(same_bits(whole, w.grad()));
    }
}

TEST_CASE("Law: the gradient of a broadcast operand is the sum over the repeated axes") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        Random random(seed);
        const Shape out = random.shape(4, 3), small = random.within(out);
        INFO(to_string(small) << " in " << to_string(out) << ", seed " << seed);
        const Tensor64 a = parameter(random.array<double>(small)), b = constant(random.array<double>(out));
        sum(a * b).backward();
        const Tensor64 same = parameter(a.value());
        sum(broadcast_to(same, out) * b).backward();
        CHECK(same_bits(a.grad(), same.grad()));
        std::vector<double> expected(small.size());
        const auto addends = in_double(b.value()), summed = in_double(a.grad());
        for (std::size_t i = 0; i < out.size(); ++i) {
            std::size_t rest = i, place = 0, stride = 1;
            for (int axis = out.rank(); axis-- > 0;) {
                const auto index = rest % static_cast<std::size_t>(out[axis]);
                rest /= static_cast<std::size_t>(out[axis]);
                const int own = axis - (out.rank() - small.rank());
                if (own < 0) continue;
                if (small[own] != 1) place += index * stride;
                stride *= static_cast<std::size_t>(small[own]);
            }
            expected[place] += addends[i];
        }
        for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(summed[i] - expected[i]) < 1e-13);
    }
}

TEST_CASE("Law: matmul, batched and transposed, equals three loops") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Random random(seed);
        const bool large = seed % 3 == 0;
        const std::int64_t m = random.whole(1, large ? 20 : 4), k = random.whole(0, large ? 33 : 4),
                           n = random.whole(1, large ? 17 : 4);
        const bool ta = random.coin(), tb = random.coin();
        const std::int64_t batch_a = random.coin() ? 3 : 1, batch_b = random.coin() ? 3 : 1;
        const auto a =
            random.array<double>(ta ? Shape{2, batch_a, k, m} : Shape{2, batch_a, m, k}).to(Device::cpu);
        const auto b = random.array<double>(tb ? Shape{batch_b, n, k} : Shape{batch_b, k, n}).to(Device::cpu);
        INFO(to_string(a.shape()) << (ta ? " transposed x " : " x ") << to_string(b.shape())
                                  << (tb ? " transposed" : "") << ", seed " << seed);
        const Array<double> y =
            matmul(Tensor64(a.to(here())), Tensor64(b.to(here())), {.transpose_a = ta, .transpose_b = tb})
                .value()
                .to(Device::cpu);
        const std::int64_t batch = std::max(batch_a, batch_b);
        REQUIRE(y.shape() == Shape{2, batch, m, n});
        const auto at = [](const Array<double>& x, std::int64_t member, std::int64_t row, std::int64_t column,
                           bool transposed) {
            const int last = x.shape().rank() - 1;
            if (transposed) std::swap(row, column);
            return x.data()[static_cast<std::size_t>((member * x.shape()[last - 1] + row) * x.shape()[last] +
                                                     column)];
        };
        for (std::int64_t outer = 0; outer < 2; ++outer)
            for (std::int64_t inner = 0; inner < batch; ++inner)
                for (std::int64_t i = 0; i < m; ++i)
                    for (std::int64_t j = 0; j < n; ++j) {
                        double expected = 0;
                        for (std::int64_t p = 0; p < k; ++p)
                            expected += at(a, outer * batch_a + (batch_a == 1 ? 0 : inner), i, p, ta) *
                                        at(b, batch_b == 1 ? 0 : inner, p, j, tb);
                        REQUIRE(std::abs(at(y, outer * batch + inner, i, j, false) - expected) < 1e-12);
                    }
    }
}

TEST_CASE("Law: a reduction over any axes equals reductions of a permuted array, one axis at a time") {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        Random random(seed);
        const Shape shape{random.whole(1, 3), random.whole(1, 3), random.whole(1, 3), random.whole(1, 3)};
        const Tensor64 x(random.array<double>(shape));
        detail::Axes axes;
        for (int axis = 0; axis < 4; ++axis)
            if (random.coin()) axes.push_back(axis);
        if (axes.empty()) continue;
        Tensor64 step_by_step = x;
        for (std::size_t i = axes.size(); i-- > 0;) step_by_step = sum(step_by_step, {axes[i]});
        const Tensor64 at_once = sum(x, axes);
        INFO(to_string(shape) << ", seed " << seed);
        REQUIRE(at_once.shape() == step_by_step.shape());
        const auto got = in_double(at_once.value()), want = in_double(step_by_step.value());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - want[i]) < 1e-13);
        const Tensor64 kept = sum(x, axes, {.keepdims = true});
        CHECK(kept.shape().rank() == 4);
        CHECK(same_bits(kept.value().reshaped(at_once.shape()), at_once.value()));
    }
}

TEST_CASE("Law: softmax adds up to one, its logarithm is log_softmax, and logsumexp is the difference") {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        Random random(seed);
        const Tensor64 x(random.array<double>({3, 4, 2}, -30, 30));
        const std::int64_t axis = random.whole(0, 2);
        INFO("axis " << axis << ", seed " << seed);
        const Tensor64 p = softmax(x, axis), total = sum(p, {axis});
        for (double each : total.value().to_vector()) CHECK(std::abs(each - 1) < 1e-14);
        const auto a = in_double(log_softmax(x, axis).value()), b = in_double(log(p).value()),
                   c = in_double((x - logsumexp(x, {axis}, {.keepdims = true})).value());
        for (std::size_t i = 0; i < a.size(); ++i) {
            CHECK(std::abs(a[i] - b[i]) < 1e-12);
            CHECK(std::abs(a[i] - c[i]) < 1e-12);
        }
    }
}

TEST_CASE("Law: scalars and arrays give the same numbers") {
    const auto both = [](auto f) {
        const Scalar x = parameter(0.75), w = parameter(-1.5);
        const Tensor64 u = parameter({0.75}), v = parameter({-1.5});
        const Scalar y = f(x, w);
        const Tensor64 z = f(u, v);
        CHECK(y.item() == z.item());
        y.backward();
        z.backward();
        CHECK(x.grad() == u.grad().item());
        CHECK(w.grad() == v.grad().item());
    };
    both([](auto x, auto w) { return (x * w + 2) / (x - w) - 3 * w; });
    both([](auto x, auto w) { return pow(x, 3) * abs(w) + maximum(x, w) * minimum(x, w) - x / 7; });
    both([](auto x, auto w) { return sqrt(x) * (1 - w) + relu(w) + clamp(x * w, -1, 0.5) + 1 / w; });
}

TEMPLATE_TEST_CASE("Law: layer_norm does not depend on the scale of large inputs", "", float, double) {
    using S = TestType;
    constexpr bool single = sizeof(S) == 4;
    const double small = std::ldexp(1.0, single ? 20 : 40), tolerance = single ? 4e-6 : 1e-13;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const std::int64_t width = random.whole(2, 70);
        const Shape shape{random.whole(1, 3), width};
        const Array<S> x = random.array<S>(shape, -0.99, 0.99), dy = random.array<S>(shape),
                       gain = random.array<S>({width}), bias = random.array<S>({width});
        const auto at = [&](double scale) {
            const Var<Array<S>> scaled(map(functor::MulNumber{scale}, x), detail::State::leaf);
            const Var<Array<S>> y = layer_norm(scaled, Var<Array<S>>(gain), Var<Array<S>>(bias));
            y.backward(dy);
            return std::pair(y.value().to_vector(),
                             map(functor::MulNumber{scale}, scaled.grad()).to_vector());
        };
        const auto want = at(small);
        for (const double scale : {std::ldexp(1.0, single ? 62 : 510), std::ldexp(1.0, single ? 100 : 900),
                                   std::ldexp(1.0, single ? 127 : 1023)}) {
            CAPTURE(scale);
            const auto got = at(scale);
            for (std::size_t i = 0; i < got.first.size(); ++i)
                CHECK(std::abs(got.first[i] - want.first[i]) <= tolerance * 10);
            if (scale > std::ldexp(1.0, single ? 100 : 900)) continue;  // 1 / deviation is denormal there
            for (std::size_t i = 0; i < got.second.size(); ++i)
                CHECK(std::abs(got.second[i] - want.second[i]) <= tolerance * 100);
        }
    }
    const Var<Array<S>> one(Array<S>::full({3}, S(1), here())), none(Array<S>::zeros({3}, here()));
    const double largest = single ? 1e20 : 1e200;
    const Array<S> odd({3}, {S(-1), S(2), static_cast<S>(largest)}, here());
    const std::vector<S> y = layer_norm(Var<Array<S>>(odd), one, none).value().to_vector();
    CHECK(std::abs(y[0] + std::sqrt(0.5)) < 1e-6);
    CHECK(std::abs(y[1] + std::sqrt(0.5)) < 1e-6);
    CHECK(std::abs(y[2] - std::sqrt(2.0)) < 1e-6);
    const Array<S> equal = Array<S>::full({3}, std::numeric_limits<S>::max(), here());
    CHECK(layer_norm(Var<Array<S>>(equal), one, none).value().to_vector() == std::vector<S>{0, 0, 0});
    const Array<S> lost({3}, {1, std::numeric_limits<S>::infinity(), 2}, here());
    CHECK(any_nan(layer_norm(Var<Array<S>>(lost), one, none).value()));
}

TEMPLATE_TEST_CASE("batch_norm: the result is NaN when the variance overflows", "", float, double) {
    using S = TestType;
    const S large = static_cast<S>(sizeof(S) == 4 ? 1e20 : 1e200);
    const Array<S> x({3, 2}, {S(-1), 1, S(2), 2, large, 3}, here());
    const Var<Array<S>> one(Array<S>::full({2}, S(1), here())), none(Array<S>::zeros({2}, here()));
    const detail::BatchNormResult<S> done = batch_norm(Var<Array<S>>(x), one, none);
    const std::vector<S> y = done.y.value().to_vector();
    for (std::size_t i = 0; i < 6; ++i) CHECK(std::isnan(y[i]) == (i % 2 == 0));
    CHECK(std::isnan(done.statistics.variance.to_vector()[0]));
}
