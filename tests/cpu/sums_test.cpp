// Compares reductions, softmax, losses and norms with plain loops. Splitting a sum into two calls must not
// change any bit.
#include <limits>

#include "effort.hpp"
#include "kernel_testing.hpp"

namespace tally::test {
namespace {

// A fold over adjacent elements for each kind of team: a thread, a warp that adds in order or not, and a block.
detail::ReduceDims fold_in_team(unsigned seed) {
    return {3, std::array<std::size_t, 4>{4, 50, 300, 1500}[seed % 4], 1};
}

detail::ReduceDims random_fold(Dice& dice, std::size_t least_reduced = 0) {
    const std::vector<std::size_t> long_ones{0, 1, 2, 3, 7, 16, 17, 64, 65, 255, 256, 257, 1023, 1025, 3000},
        short_ones{0, 1, 2, 3, 5};
    detail::ReduceDims dims{dice.pick(short_ones), std::max(least_reduced, dice.pick(long_ones)), 1};
    if (dice.coin())
        dims = {dice.pick(short_ones), std::max(least_reduced, dice.pick(short_ones)), dice.pick(long_ones)};
    if (dice.upto(9) == 0)
        dims = {2, dice.pick<std::size_t>({1024, 1025, 3000}), dice.pick<std::size_t>({2, 17})};
    return dims;
}

std::string text(const detail::ReduceDims& dims) {
    return std::to_string(dims.outer) + " x " + std::to_string(dims.reduced) + " x " +
           std::to_string(dims.inner);
}

}  // namespace

TEMPLATE_TEST_CASE("sum, mean, spread, max: agree with the plain loop", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(500u); ++seed) {
        Dice dice(seed);
        detail::ReduceDims dims = seed < 8 ? fold_in_team(seed) : random_fold(dice);
        dims.in_order = seed >= 8 && dice.coin();
        const Write how = dice.how();
        INFO(dice.text() << ", " << text(dims) << ", " << write_names[static_cast<int>(how)]);
        const std::size_t size = dims.outer * dims.reduced * dims.inner, results = dims.outer * dims.inner;
        const auto x = dice.numbers<S>(size), dy = dice.numbers<S>(results);

        const auto y = dice.destination<S>(results, how);
        const Buffer<S> want = y;
        fast<S>().sum(x.data(), into(y, how), dims);
        plain<S>().sum(x.data(), into(want, how), dims);
        const bool ordered = sums_in_order(dims);
        CHECK((ordered ? bit_difference(y, want)
                       : difference(y, want, 8, static_cast<double>(dims.reduced))) == "");

        Buffer<S> average(results, dice.upto(3)), want_average(results);
        fast<S>().mean(x.data(), average.data(), dims);
        plain<S>().mean(x.data(), want_average.data(), dims);
        CHECK((ordered ? bit_difference(average, want_average)
                       : difference(average, want_average, 8, static_cast<double>(dims.reduced))) == "");

        for (S divisor : {S(1), S(3)}) {
            const auto dx = dice.destination<S>(size, how);
            const Buffer<S> want_dx = dx;
            fast<S>().spread(dy.data(), divisor, into(dx, how), dims);
            plain<S>().spread(dy.data(), divisor, into(want_dx, how), dims);
            CHECK(bit_difference(dx, want_dx) == "");
        }
        if (dims.reduced == 0) continue;
        for (S& number : x) {  // makes equal numbers and special values
            if (seed % 8 < 4) continue;
            number = std::round(number * 4) / 4;
            if (dice.upto(300) == 0)
                number =
                    dice.pick<S>({std::numeric_limits<S>::quiet_NaN(), std::numeric_limits<S>::infinity(),
                                  -std::numeric_limits<S>::infinity()});
        }
        const Buffer<S> top(results, dice.upto(3)), want_top(results);
        fast<S>().max(x.data(), top.data(), dims);
        plain<S>().max(x.data(), want_top.data(), dims);
        CHECK(difference(top, want_top, 0) == "");
        const auto dx = dice.destination<S>(size, how);
        const Buffer<S> want_dx = dx;
        fast<S>().max_back(dy.data(), x.data(), top.data(), into(dx, how), dims);
        plain<S>().max_back(dy.data(), x.data(), top.data(), into(want_dx, how), dims);
        CHECK(difference(dx, want_dx, 2) == "");
    }
}

TEMPLATE_TEST_CASE("cumsum, prod, argmax: have the bits of the plain loop", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(300u); ++seed) {
        Dice dice(seed);
        const detail::ReduceDims dims = seed < 8 ? fold_in_team(seed) : random_fold(dice);
        const Write how = dice.how();
        INFO(dice.text() << ", " << text(dims) << ", " << write_names[static_cast<int>(how)]);
        const std::size_t size = dims.outer * dims.reduced * dims.inner, results = dims.outer * dims.inner;
        const auto x = dice.numbers<S>(size), dy = dice.numbers<S>(results);
        for (S& number : x)  // makes zeros, equal numbers and special values
            if (dice.upto(3) == 0)
                number = std::round(number);
            else if (dice.upto(200) == 0)
                number =
                    dice.pick<S>({std::numeric_limits<S>::quiet_NaN(), -std::numeric_limits<S>::infinity()});
        for (const bool from_the_end : {false, true}) {
            const auto y = dice.destination<S>(size, how);
            const Buffer<S> want = y;
            fast<S>().cumsum(x.data(), into(y, how), dims, from_the_end);
            plain<S>().cumsum(x.data(), into(want, how), dims, from_the_end);
            CHECK(bit_difference(y, want) == "");
        }
        const Buffer<S> product(results, dice.upto(3)), want_product(results), dx(size, dice.upto(3)),
            want_dx(size);
        fast<S>().prod(x.data(), product.data(), dims);
        plain<S>().prod(x.data(), want_product.data(), dims);
        CHECK(bit_difference(product, want_product) == "");
        fast<S>().prod_back(dy.data(), x.data(), dx.data(), dims);
        plain<S>().prod_back(dy.data(), x.data(), want_dx.data(), dims);
        CHECK(bit_difference(dx, want_dx) == "");
        if (dims.reduced == 0) continue;
        const Buffer<std::int32_t> place(results), want_place(results);
        fast<S>().argmax(x.data(), place.data(), dims);
        plain<S>().argmax(x.data(), want_place.data(), dims);
        CHECK(std::equal(place.begin(), place.end(), want_place.begin()));
    }
}

TEMPLATE_TEST_CASE("sum: a sum over samples in two calls has the bits of one call", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(300u); ++seed) {
        Dice dice(seed);
        std::size_t rows = 2 + dice.upto(100);
        const std::size_t width = dice.pick<std::size_t>({1, 2, 3, 10, 16, 17, 33, 512});
        if (width == 1 && dice.coin()) rows = 1000 + dice.upto(3000);
        const std::size_t cut = 1 + dice.upto(rows - 2);
        INFO(dice.text() << ", " << rows << " rows of " << width << ", cut after " << cut);
        const auto x = dice.numbers<S>(rows * width), dy = dice.numbers<S>(rows * width);
        const Buffer<S> once(width, dice.upto(3)), twice(width, dice.upto(3));
        fast<S>().sum(x.data(), into(once, Write::set), {1, rows, width, true});
        fast<S>().sum(x.data(), into(twice, Write::set), {1, cut, width, true});
        fast<S>().sum(x.data() + cut * width, into(twice, Write::add), {1, rows - cut, width, true});
        CHECK(bit_difference(twice, once) == "");

        const auto mean = dice.numbers<S>(rows), rstd = dice.numbers<S>(rows, 0.5, 2);
        const Buffer<S> gain_once(width), gain_twice(width);
        fast<S>().layer_norm_back_gain(dy.data(), x.data(), mean.data(), rstd.data(),
                                       into(gain_once, Write::set), rows, width);
        fast<S>().layer_norm_back_gain(dy.data(), x.data(), mean.data(), rstd.data(),
                                       into(gain_twice, Write::set), cut, width);
        fast<S>().layer_norm_back_gain(dy.data() + cut * width, x.data() + cut * width, mean.data() + cut,
                                       rstd.data() + cut, into(gain_twice, Write::add), rows - cut, width);
        CHECK(bit_difference(gain_twice, gain_once) == "");
    }
}

TEST_CASE("sum: a sum of one term is the term, also for -0", "") {
    const Buffer<double> x(40), y(40);
    std::fill(x.begin(), x.end(), -0.0);
    for (detail::ReduceDims dims :
         {detail::ReduceDims{1, 1, 40}, detail::ReduceDims{40, 1, 1}, detail::ReduceDims{1, 2, 20},
          detail::ReduceDims{8, 5, 1}, detail::ReduceDims{1, 40, 1}}) {
        INFO(text(dims));
        fast<double>().sum(x.data(), into(y, Write::set), dims);
        for (std::size_t i = 0; i < dims.outer * dims.inner; ++i) CHECK(std::signbit(y[i]));
    }
    fast<double>().sum(x.data(), into(y, Write::set), detail::ReduceDims{1, 0, 40});
    CHECK(std::none_of(y.begin(), y.end(), [](double v) { return std::signbit(v); }));
}

TEMPLATE_TEST_CASE("softmax, log_softmax, logsumexp: agree with the plain loop, forward and backward", "",
                   float, double) {
    using S = TestType;
    const S inf = std::numeric_limits<S>::infinity(), nan = std::numeric_limits<S>::quiet_NaN();
    for (unsigned seed = 0; seed < launches_of(400u); ++seed) {
        Dice dice(seed);
        const detail::ReduceDims dims = seed < 8 ? fold_in_team(seed) : random_fold(dice);
        const Write how = dice.how();
        INFO(dice.text() << ", " << text(dims) << ", " << write_names[static_cast<int>(how)]);
        const std::size_t size = dims.outer * dims.reduced * dims.inner, results = dims.outer * dims.inner;
        const auto x = dice.numbers<S>(size, -5, 5), dy = dice.numbers<S>(size),
                   dy_of_each = dice.numbers<S>(results);
        const std::size_t kind = seed < 8 ? 0 : dice.upto(3);
        for (S& number : x) {
            if (kind == 1 && dice.coin()) number = -inf;
            if (kind == 2 && dice.upto(50) == 0) number = dice.pick<S>({inf, -inf, nan});
            if (kind == 3) number = -inf;
        }
        const double terms = 8 + static_cast<double>(dims.reduced);
        const auto both_ways = [&](auto forward, auto back) {
            const Buffer<S> y(size, dice.upto(3)), want(size);
            (fast<S>().*forward)(x.data(), y.data(), dims);
            (plain<S>().*forward)(x.data(), want.data(), dims);
            CHECK(difference(y, want, 8 * terms) == "");
            const auto dx = dice.destination<S>(size, how);
            const Buffer<S> want_dx = dx;
            (fast<S>().*back)(dy.data(), want.data(), into(dx, how), dims);
            (plain<S>().*back)(dy.data(), want.data(), into(want_dx, how), dims);
            CHECK(difference(dx, want_dx, 16 * terms) == "");
        };
        both_ways(&Kernels<S>::softmax, &Kernels<S>::softmax_back);
        both_ways(&Kernels<S>::log_softmax, &Kernels<S>::log_softmax_back);

        const Buffer<S> y(results, dice.upto(3)), want(results);
        fast<S>().logsumexp(x.data(), y.data(), dims);
        plain<S>().logsumexp(x.data(), want.data(), dims);
        CHECK(difference(y, want, 8 * terms) == "");
        const auto dx = dice.destination<S>(size, how);
        const Buffer<S> want_dx = dx;
        fast<S>().logsumexp_back(dy_of_each.data(), x.data(), want.data(), into(dx, how), dims);
        plain<S>().logsumexp_back(dy_of_each.data(), x.data(), want.data(), into(want_dx, how), dims);
        CHECK(difference(dx, want_dx, 32) == "");
    }
}

TEMPLATE_TEST_CASE("cross_entropy: agrees with the plain loop, forward and backward", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(200u); ++seed) {
        Dice dice(seed);
        const std::size_t rows = seed < 8 ? std::array<std::size_t, 4>{4, 50, 1024, 1500}[seed % 4]
                                          : dice.upto(9),
                          classes =
                              seed < 8 ? 3 : dice.pick<std::size_t>({1, 2, 10, 16, 17, 64, 100, 1000, 1100});
        const Write how = dice.how();
        const LabelOptions settings{-100, dice.coin() ? 0.1 : 0};
        INFO(dice.text() << ", " << rows << " rows of " << classes << " classes, "
                         << write_names[static_cast<int>(how)] << ", smoothing " << settings.smoothing);
        const auto logits = dice.numbers<S>(rows * classes, -5, 5);
        const auto labels = dice.integers(rows, classes);
        for (auto& label : labels)
            if (dice.upto(4) == 0) label = -100;
        const Buffer<S> p(rows * classes, dice.upto(3)), want_p(rows * classes), total(1), want_total(1),
            count(1), want_count(1);
        fast<S>().cross_entropy(logits.data(), labels.data(), settings, p.data(), total.data(), count.data(),
                                rows, classes);
        plain<S>().cross_entropy(logits.data(), labels.data(), settings, want_p.data(), want_total.data(),
                                 want_count.data(), rows, classes);
        CHECK(difference(p, want_p, 16 + static_cast<double>(classes)) == "");
        CHECK(difference(total, want_total, 64, static_cast<double>(rows)) == "");
        CHECK(difference(count, want_count, 0) == "");

        const auto dtotal = dice.numbers<S>(1);
        const auto d = dice.destination<S>(rows * classes, how);
        const Buffer<S> want_d = d;
        fast<S>().cross_entropy_back(dtotal.data(), want_p.data(), labels.data(), settings, into(d, how),
                                     rows, classes);
        plain<S>().cross_entropy_back(dtotal.data(), want_p.data(), labels.data(), settings,
                                      into(want_d, how), rows, classes);
        CHECK(bit_difference(d, want_d) == "");
    }
}

TEMPLATE_TEST_CASE("max, softmax, cross_entropy: the largest element may be in any place", "", float,
                   double) {
    using S = TestType;
    for (const std::size_t width : {std::size_t(3), std::size_t(100), std::size_t(1100)}) {
        Dice dice(static_cast<unsigned>(width));
        constexpr std::array<std::size_t, 16> places{0,  1,  2,  3,  4,   8,   16,  20,
                                                     24, 31, 64, 96, 100, 128, 200, 255};
        const detail::ReduceDims dims{places.size(), width, 1};
        const std::size_t size = dims.outer * width;
        const auto x = dice.numbers<S>(size), dy = dice.numbers<S>(dims.outer);
        const auto labels = dice.integers(dims.outer, width);
        for (std::size_t r = 0; r < dims.outer; ++r)  // exp(x) without the shift overflows
            x[r * width + places[r] % width] = S(1000.3);
        INFO("width " << width);
        const auto same = [&](std::size_t results, double units, auto call) {
            const Buffer<S> got(results), want(results);
            call(fast<S>(), got.data());
            call(plain<S>(), want.data());
            CHECK(difference(got, want, units) == "");
        };
        const double units = 16 + static_cast<double>(width);
        const Buffer<S> tops(dims.outer);
        std::fill(tops.begin(), tops.end(), S(1000.3));
        same(dims.outer, 0, [&](const Kernels<S>& k, S* y) { k.max(x.data(), y, dims); });
        same(size, 0, [&](const Kernels<S>& k, S* dx) {
            k.max_back(dy.data(), x.data(), tops.data(), {dx, Write::set}, dims);
        });
        same(size, units, [&](const Kernels<S>& k, S* y) { k.softmax(x.data(), y, dims); });
        same(size, units, [&](const Kernels<S>& k, S* y) { k.log_softmax(x.data(), y, dims); });
        same(dims.outer, units, [&](const Kernels<S>& k, S* y) { k.logsumexp(x.data(), y, dims); });
        // The rows of the fast kernel overflow without scaling, and have the same results.
        const S scale = std::ldexp(S(1), std::numeric_limits<S>::max_exponent - 12);
        same(size, 64 + 4 * units, [&](const Kernels<S>& k, S* y) {
            const bool is_plain = &k == &plain<S>();
            const Buffer<S> z = x, mean(dims.outer), rstd(dims.outer);
            for (S& number : z) number *= is_plain ? S(1) : scale;
            k.layer_norm(z.data(), nullptr, nullptr, S(0), y, mean.data(), rstd.data(), dims.outer, width);
        });
        same(size, units, [&](const Kernels<S>& k, S* p) {
            const Buffer<S> total(1), count(1);
            k.cross_entropy(x.data(), labels.data(), LabelOptions{-100, 0.1}, p, total.data(), count.data(),
                            dims.outer, width);
        });
    }
}

TEMPLATE_TEST_CASE("cross_entropy: throws Error with the first label that is not a class", "", float,
                   double) {
    using S = TestType;
    for (const std::size_t rows : std::vector<std::size_t>{3, 4, 40, 1024, 1500}) {
        Dice dice(static_cast<unsigned>(rows));
        const auto logits = dice.numbers<S>(rows * 3);
        const Buffer<S> p(rows * 3), total(1), count(1);
        for (const std::size_t k : {0u, 1u, 2u, 3u, 4u, 8u, 16u, 31u, 32u, 64u, 127u, 128u, 255u}) {
            if (k >= rows) break;
            const auto labels = dice.integers(rows, 3);
            for (auto& label : labels)
                if (dice.upto(4) == 0) label = LabelOptions{}.ignore;
            labels[k + dice.upto(rows - 1 - k)] = -1;
            labels[k] = 5;
            CHECK_THROWS_WITH(
                fast<S>().cross_entropy(logits.data(), labels.data(), LabelOptions{}, p.data(), total.data(),
                                        count.data(), rows, 3),
                "[cross_entropy] label 5 in row " + std::to_string(k) + " is not one of the 3 classes");
        }
    }
}

TEMPLATE_TEST_CASE("layer_norm: agrees with the plain loop, forward and backward", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(200u); ++seed) {
        Dice dice(seed);
        const bool in_team = seed < 16;
        const std::size_t rows = in_team ? 3 : dice.upto(7),
                          width =
                              in_team
                                  ? std::array<std::size_t, 4>{3, 4, 40, 1100}[seed % 4]
                                  : dice.pick<std::size_t>({1, 2, 3, 8, 15, 16, 17, 64, 65, 257, 1000, 1100});
        const bool has_gain = in_team ? seed < 8 : dice.coin(), has_bias = dice.coin();
        // The sum or the squares of very large numbers overflow, so they are scaled, and eps has no effect.
        const bool is_large = in_team ? seed / 4 % 2 == 1 : width > 1 && dice.upto(3) == 0;
        const S size = is_large ? std::ldexp(S(1), std::numeric_limits<S>::max_exponent - 2) : S(1),
                eps = is_large ? S(0) : S(1e-3);
        const Write how = dice.how();
        INFO(dice.text() << ", " << rows << " x " << width << (has_gain ? ", gain" : "")
                         << (has_bias ? ", bias" : "") << ", " << write_names[static_cast<int>(how)]);
        const auto x = dice.numbers<S>(rows * width), dy = dice.numbers<S>(rows * width),
                   gain = dice.numbers<S>(width), bias = dice.numbers<S>(width);
        const S *g = has_gain ? gain.data() : nullptr, *b = has_bias ? bias.data() : nullptr;
        const Buffer<S> y(rows * width, dice.upto(3)), want(rows * width), mean(rows), want_mean(rows),
            rstd(rows), want_rstd(rows);
        plain<S>().layer_norm(x.data(), g, b, eps, want.data(), want_mean.data(), want_rstd.data(), rows,
                              width);
        for (S& number : x) number *= size;
        for (S& number : want_mean) number *= size;
        for (S& number : want_rstd) number /= size;
        fast<S>().layer_norm(x.data(), g, b, S(1e-3), y.data(), mean.data(), rstd.data(), rows, width);
        // rstd, which is 1 / standard deviation, is about 30 for a row of one element.
        const double units = 64 + 4 * static_cast<double>(width);
        CHECK(difference(y, want, units) == "");
        CHECK(difference(mean, want_mean, units, static_cast<double>(size)) == "");
        CHECK(difference(rstd, want_rstd, units, 1 / static_cast<double>(size)) == "");

        const auto dx = dice.destination<S>(rows * width, how), dgain = dice.destination<S>(width, how);
        const Buffer<S> want_dx = dx, want_dgain = dgain;
        fast<S>().layer_norm_back(dy.data(), x.data(), g, want_mean.data(), want_rstd.data(), into(dx, how),
                                  rows, width);
        plain<S>().layer_norm_back(dy.data(), x.data(), g, want_mean.data(), want_rstd.data(),
                                   into(want_dx, how), rows, width);
        CHECK(difference(dx, want_dx, 4 * units, 30) == "");
        fast<S>().layer_norm_back_gain(dy.data(), x.data(), want_mean.data(), want_rstd.data(),
                                       into(dgain, how), rows, width);
        plain<S>().layer_norm_back_gain(dy.data(), x.data(), want_mean.data(), want_rstd.data(),
                                        into(want_dgain, how), rows, width);
        CHECK(bit_difference(dgain, want_dgain) == "");
    }
}

TEMPLATE_TEST_CASE("batch_norm: agrees with the plain loop, forward and backward", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(300u); ++seed) {
        Dice dice(seed);
        const detail::BatchNormDims dims{dice.upto(9), dice.pick<std::size_t>({1, 2, 3, 8, 16, 17, 65}),
                                         dice.pick<std::size_t>({1, 1, 2, 9, 16, 33, 300})};
        const Write how = dice.how();
        INFO(dice.text() << ", " << dims.items << " x " << dims.features << " x " << dims.space << ", "
                         << write_names[static_cast<int>(how)]);
        const std::size_t size = dims.items * dims.features * dims.space, features = dims.features;
        const auto x = dice.numbers<S>(size), dy = dice.numbers<S>(size), gain = dice.numbers<S>(features),
                   bias = dice.numbers<S>(features), rstd = dice.numbers<S>(features, 0.5, 2);
        const double terms = static_cast<double>(dims.items * dims.space), units = 64 + terms;

        const Buffer<S> mean(features, dice.upto(3)), want_mean(features), variance(features),
            want_variance(features);
        fast<S>().batch_moments(x.data(), mean.data(), variance.data(), dims);
        plain<S>().batch_moments(x.data(), want_mean.data(), want_variance.data(), dims);
        CHECK(difference(mean, want_mean, units) == "");
        CHECK(difference(variance, want_variance, units) == "");
        std::fill(want_mean.begin(), want_mean.end(), S(0.25));  // the backward kernel accepts any mean

        const Buffer<S> y(size, dice.upto(3)), want(size);
        fast<S>().batch_norm(x.data(), want_mean.data(), rstd.data(), gain.data(), bias.data(), y.data(),
                             dims);
        plain<S>().batch_norm(x.data(), want_mean.data(), rstd.data(), gain.data(), bias.data(), want.data(),
                              dims);
        CHECK(bit_difference(y, want) == "");

        const Buffer<S> total(features), want_total(features), along(features, dice.upto(3)),
            want_along(features);
        fast<S>().batch_norm_back_sums(dy.data(), x.data(), want_mean.data(), rstd.data(), total.data(),
                                       along.data(), dims);
        plain<S>().batch_norm_back_sums(dy.data(), x.data(), want_mean.data(), rstd.data(), want_total.data(),
                                        want_along.data(), dims);
        CHECK(difference(total, want_total, units, terms) == "");
        CHECK(difference(along, want_along, units, 4 * terms) == "");

        for (bool own : {true, false}) {
            const auto dx = dice.destination<S>(size, how);
            const Buffer<S> want_dx = dx;
            const S *v = own ? x.data() : nullptr, *m = own ? want_mean.data() : nullptr,
                    *sum = own ? want_total.data() : nullptr, *sum_along = own ? want_along.data() : nullptr;
            fast<S>().batch_norm_back(dy.data(), v, m, rstd.data(), gain.data(), sum, sum_along,
                                      into(dx, how), dims);
            plain<S>().batch_norm_back(dy.data(), v, m, rstd.data(), gain.data(), sum, sum_along,
                                       into(want_dx, how), dims);
            CHECK(bit_difference(dx, want_dx) == "");
        }
    }
}

}  // namespace tally::test
