// Compares map, zip, where and their gradients with plain loops and with functions of std, at every position
// in a SIMD batch.
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "effort.hpp"
#include "kernel_testing.hpp"

namespace tally::test {
namespace {

// Returns the interval of the random arguments of a functor. The arguments of logarithms are positive, and
// the arguments of losses are probabilities.
template <class F> std::pair<double, double> domain() {
    constexpr std::string_view name{F::name};
    if (name == "log" || name == "sqrt" || name == "pow" || name == "pow_number") return {0.1, 3};
    if (name == "log1p") return {-0.9, 3};
    if (name == "binary_cross_entropy") return {0.05, 0.95};
    return {-3, 3};
}

}  // namespace

TEMPLATE_TEST_CASE("map, map_back: agree with the plain loop at every size", "", float, double) {
    using S = TestType;
    each_functor<UnaryOps>([&](std::size_t slot, auto f) {
        using F = decltype(f);
        const auto [low, high] = domain<F>();
        for (std::size_t n : awkward_sizes) {
            Dice dice(static_cast<unsigned>(n));
            INFO(std::string_view(F::name) << ", " << n << " elements, " << dice.text());
            const auto x = dice.numbers<S>(n, low, high), dy = dice.numbers<S>(n);
            const Buffer<S> y(n, dice.upto(5)), want(n);
            fast<S>().map[slot](&f, x.data(), y.data(), n);
            plain<S>().map[slot](&f, x.data(), want.data(), n);
            CHECK(difference(y, want, 8) == "");

            const Buffer<S> in_place = x;
            fast<S>().map[slot](&f, in_place.data(), in_place.data(), n);
            CHECK(bit_difference(in_place, y) == "");

            const S* kept = F::keeps == Keep::nothing ? nullptr
                            : F::keeps == Keep::input ? x.data()
                                                      : want.data();
            for (Write how : {Write::set, Write::add}) {
                INFO(write_names[static_cast<int>(how)]);
                const auto dx = dice.destination<S>(n, how);
                const Buffer<S> want_dx = dx;
                fast<S>().map_back[slot](&f, dy.data(), kept, into(dx, how), n);
                plain<S>().map_back[slot](&f, dy.data(), kept, into(want_dx, how), n);
                CHECK(difference(dx, want_dx, 32) == "");
                if (how == Write::add) continue;
                const Buffer<S> over_dy = dy;
                fast<S>().map_back[slot](&f, over_dy.data(), kept, into(over_dy, how), n);
                CHECK(bit_difference(over_dy, dx) == "");
            }
        }
    });
}

TEMPLATE_TEST_CASE("map: a value does not depend on its position", "", float, double) {
    using S = TestType;
    constexpr std::size_t places = 70;
    Dice dice(1);
    each_functor<UnaryOps>([&](std::size_t slot, auto f) {
        using F = decltype(f);
        const auto [low, high] = domain<F>();
        INFO(std::string_view(F::name) << ", " << dice.text());
        for (int trial = 0; trial < 20; ++trial) {
            const S x = dice.numbers<S>(1, low, high)[0], slope = dice.numbers<S>(1)[0];
            const Buffer<S> alone(1), alone_y(1), alone_dy(1), alone_dx(1);
            alone[0] = x;
            alone_dy[0] = slope;
            fast<S>().map[slot](&f, alone.data(), alone_y.data(), 1);
            const S y = alone_y[0], kept = F::keeps == Keep::output ? y : x;
            const Buffer<S> alone_kept(1);
            alone_kept[0] = kept;
            fast<S>().map_back[slot](&f, alone_dy.data(), alone_kept.data(), into(alone_dx, Write::set), 1);
            const S dx = alone_dx[0];
            for (std::size_t place = 0; place < places; ++place) {
                const Buffer<S> xs = dice.numbers<S>(places, low, high),
                                kepts = dice.numbers<S>(places, low, high), dys = dice.numbers<S>(places);
                const Buffer<S> ys(places, dice.upto(3)), dxs(places, dice.upto(3));
                xs[place] = x;
                kepts[place] = kept;
                dys[place] = slope;
                fast<S>().map[slot](&f, xs.data(), ys.data(), places);
                fast<S>().map_back[slot](&f, dys.data(), kepts.data(), into(dxs, Write::set), places);
                if (!same_bits(ys[place], y) || !same_bits(dxs[place], dx))
                    FAIL("at position " << place << " for x = " << x);
            }
        }
    });
}

namespace {

// Returns the largest error of f in units in the last place. The function `make` computes the argument from a
// random number between 0 and 1.
template <class S, class F, class Exact, class Make>
double worst_ulps(F f, Exact exact, Make make, unsigned seed) {
    constexpr std::size_t n = 20000;
    Dice dice(seed);
    const auto uniform = dice.numbers<double>(n, 0, 1);
    const Buffer<S> x(n), y(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<S>(make(uniform[i]));
    fast<S>().map[slot<F, UnaryOps>](&f, x.data(), y.data(), n);
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const long double want = exact(static_cast<long double>(x[i]));
        const S rounded = std::abs(static_cast<S>(want));
        const long double unit =
            static_cast<long double>(std::nextafter(rounded, std::numeric_limits<S>::infinity())) -
            static_cast<long double>(rounded);
        const double error = static_cast<double>(std::abs(static_cast<long double>(y[i]) - want) / unit);
        if (!(error <= worst)) worst = std::isnan(error) ? 1e300 : error;
    }
    return worst;
}

}  // namespace

TEMPLATE_TEST_CASE("map: transcendental functions are accurate to a few units in the last place", "", float,
                   double) {
    using S = TestType;
    using L = long double;
    const double top = std::is_same_v<S, float> ? 88.7 : 709.7,
                 bottom = std::is_same_v<S, float> ? -103 : -744;
    const auto between = [](double low, double high) {
        return [=](double u) { return low + (high - low) * u; };
    };
    const auto scales = [](double low, double high) {
        return [=](double u) { return std::exp(low + (high - low) * u); };
    };
    CHECK(worst_ulps<S>(
              functor::Exp{}, [](L x) { return std::exp(x); }, between(bottom, top), 1) < 4);
    CHECK(worst_ulps<S>(
              functor::Exp{}, [](L x) { return std::exp(x); }, between(-1, 1), 2) < 2);
    CHECK(worst_ulps<S>(
              functor::Log{}, [](L x) { return std::log(x); }, scales(bottom + 1, top - 1), 3) < 2);
    CHECK(worst_ulps<S>(
              functor::Log{}, [](L x) { return std::log(x); }, between(0.5, 2), 4) < 2);
    CHECK(worst_ulps<S>(
              functor::Tanh{}, [](L x) { return std::tanh(x); }, between(-10, 10), 5) < 3);
    CHECK(worst_ulps<S>(
              functor::Tanh{}, [](L x) { return std::tanh(x); }, between(-1e-3, 1e-3), 6) < 2);
    CHECK(worst_ulps<S>(
              functor::Sin{}, [](L x) { return std::sin(x); }, between(-1000, 1000), 7) < 3);
    CHECK(worst_ulps<S>(
              functor::Cos{}, [](L x) { return std::cos(x); }, between(-1e6, 1e6), 8) < 3);
    CHECK(worst_ulps<S>(
              functor::Sqrt{}, [](L x) { return std::sqrt(x); }, scales(bottom + 1, top - 1), 9) <= 0.51);
    CHECK(worst_ulps<S>(
              functor::PowNumber{2.5}, [](L x) { return std::pow(x, L(2.5)); }, between(0.01, 50), 10) < 2);
    CHECK(worst_ulps<S>(
              functor::PowNumber{2}, [](L x) { return x * x; }, between(-50, 50), 11) <= 0.51);
    CHECK(worst_ulps<S>(
              functor::Gelu{}, [](L x) { return x / 2 * std::erfc(-x / std::sqrt(L(2))); }, between(-1, 4),
              12) < 8);
}

TEMPLATE_TEST_CASE("log1p, expm1, softplus, silu: are accurate to a few units for small, middle and large x",
                   "", float, double) {
    using S = TestType;
    using L = long double;
    const double top = std::is_same_v<S, float> ? 88.7 : 709.7, tiny = std::is_same_v<S, float> ? -80 : -700,
                 bottom = std::is_same_v<S, float> ? -87 : -708;  // smaller x have denormal results
    const auto log1p = [](L x) { return std::log1p(x); };
    const auto expm1 = [](L x) { return std::expm1(x); };
    const auto softplus = [](L x) { return std::max(x, L(0)) + std::log1p(std::exp(-std::abs(x))); };
    const auto silu = [](L x) { return x / (1 + std::exp(-x)); };
    const auto within = [&](auto f, auto exact, double low, double high, double units) {
        const double worst = worst_ulps<S>(
            f, exact, [=](double u) { return low + (high - low) * u; }, 13);
        INFO(std::string_view(f.name) << " between " << low << " and " << high << ": " << worst << " units");
        CHECK(worst < units);
    };
    const auto at_scales = [&](auto f, auto exact, double sign, double high, double units) {
        const double worst = worst_ulps<S>(
            f, exact, [=](double u) { return sign * std::exp(tiny + (high - tiny) * u); }, 14);
        INFO(std::string_view(f.name) << " from e^" << tiny << " to e^" << high << ": " << worst << " units");
        CHECK(worst < units);
    };
    within(functor::Log1p{}, log1p, -0.999, 2, 4);
    at_scales(functor::Log1p{}, log1p, 1, -tiny, 4);
    at_scales(functor::Log1p{}, log1p, -1, -0.01, 4);
    within(functor::Expm1{}, expm1, -2, 2, 5);
    within(functor::Expm1{}, expm1, bottom, top, 4);
    at_scales(functor::Expm1{}, expm1, 1, 0, 5);
    at_scales(functor::Expm1{}, expm1, -1, 0, 5);
    within(functor::Softplus{}, softplus, -30, 30, 5);
    within(functor::Softplus{}, softplus, bottom, -top, 5);
    at_scales(functor::Softplus{}, softplus, 1, -tiny, 5);
    within(functor::Silu{}, silu, -30, 30, 5);
    within(functor::Silu{}, silu, bottom + 10, -bottom, 6);
    at_scales(functor::Silu{}, silu, -1, 3, 5);
}

TEMPLATE_TEST_CASE("map, zip: special values give the results of std::", "[library]", float, double) {
    using S = TestType;
    using limits = std::numeric_limits<S>;
    const std::vector<S> edges{0,
                               -S(0),
                               limits::infinity(),
                               -limits::infinity(),
                               limits::quiet_NaN(),
                               limits::min(),
                               limits::denorm_min(),
                               -limits::denorm_min(),
                               limits::min() / 4,
                               limits::max(),
                               -limits::max(),
                               1,
                               -1,
                               2,
                               -2,
                               3,
                               -3,
                               S(0.5),
                               S(-2.5),
                               S(88.7),
                               S(89),
                               S(-87.5),
                               S(-100),
                               S(-104),
                               S(709.5),
                               710,
                               S(-708.5),
                               -720,
                               -746,
                               S(1e-10),
                               S(-1e-10),
                               S(1e6)};
    const std::vector<double> numbers{0,
                                      -0.0,
                                      1,
                                      2,
                                      3,
                                      -1,
                                      -2,
                                      0.5,
                                      -0.5,
                                      2.5,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};
    const auto check = [&](std::size_t slot, auto f) {
        const Buffer<S> x(edges.size()), y(edges.size()), want(edges.size());
        std::copy(edges.begin(), edges.end(), x.begin());
        fast<S>().map[slot](&f, x.data(), y.data(), edges.size());
        plain<S>().map[slot](&f, x.data(), want.data(), edges.size());
        for (std::size_t i = 0; i < edges.size(); ++i) {
            INFO(std::string_view(f.name) << "(" << edges[i] << ") is " << y[i] << ", not " << want[i]);
            const bool both_nan = std::isnan(y[i]) && std::isnan(want[i]);
            // gelu multiplies x by a difference of nearly equal numbers, so gelu has larger relative errors
            const bool cancels = std::string_view(f.name) == "gelu" && std::isfinite(x[i]);
            const S scale =
                cancels ? std::max(std::abs(want[i]), std::min(std::abs(x[i]), S(10))) : std::abs(want[i]);
            const S allowed = 8 * std::max(scale * limits::epsilon(), limits::denorm_min());
            CHECK((both_nan || y[i] == want[i] || std::abs(y[i] - want[i]) <= allowed));
            if (!both_nan) CHECK(std::signbit(y[i]) == std::signbit(want[i]));
        }
    };
    each_functor<UnaryOps>(check);
    for (double number : numbers) {
        INFO("number " << number);
        check(slot<functor::PowNumber, UnaryOps>, functor::PowNumber{number});
        check(slot<functor::NumberOver, UnaryOps>, functor::NumberOver{number});
        check(slot<functor::MulNumber, UnaryOps>, functor::MulNumber{number});
    }

    // Every operation is called with every pair of special values.
    each_functor<BinaryOps>([&](std::size_t slot, auto f) {
        StridedIndex<2> walk;
        walk.rank = 2;
        walk.extent = {edges.size(), edges.size()};
        walk.size = edges.size() * edges.size();
        walk.stride[0] = {1, 0};
        walk.stride[1] = {0, 1};
        walk.operand_size = {edges.size(), edges.size()};
        const Buffer<S> x(edges.size()), y(walk.size), want(walk.size);
        std::copy(edges.begin(), edges.end(), x.begin());
        fast<S>().zip[slot](&f, walk, x.data(), x.data(), y.data());
        plain<S>().zip[slot](&f, walk, x.data(), x.data(), want.data());
        for (std::size_t i = 0; i < walk.size; ++i) {
            const S a = edges[i / edges.size()], b = edges[i % edges.size()];
            const bool both_nan = std::isnan(y[i]) && std::isnan(want[i]);
            const S allowed = 8 * std::max(std::abs(want[i]) * limits::epsilon(), limits::denorm_min());
            if (!both_nan && y[i] != want[i] && !(std::abs(y[i] - want[i]) <= allowed))
                FAIL_CHECK(std::string_view(f.name)
                           << " of " << a << " and " << b << " is " << y[i] << ", not " << want[i]);
        }
    });
}

TEMPLATE_TEST_CASE("zip, zip_back: agree with the plain loop, broadcast and permuted up to rank 6", "", float,
                   double) {
    using S = TestType;
    for (unsigned seed = 0; seed < 16 + launches_of(150u); ++seed) {
        Dice dice(seed);
        const auto walk = seed < 16 ? Dice::rows_of_terms<2>(seed, seed / 8)
                                    : dice.walk<2>(dice.extents(1 + dice.upto(5)), dice.coin());
        each_functor<BinaryOps>([&](std::size_t slot, auto f) {
            using F = decltype(f);
            const auto [low, high] = domain<F>();
            INFO(std::string_view(F::name) << ", " << dice.text() << ", size " << walk.size);
            const auto a = dice.numbers<S>(walk.operand_size[0], low, high),
                       b = dice.numbers<S>(walk.operand_size[1], low, high), dy = dice.numbers<S>(walk.size);
            const Buffer<S> y(walk.size, dice.upto(5)), want(walk.size);
            fast<S>().zip[slot](&f, walk, a.data(), b.data(), y.data());
            plain<S>().zip[slot](&f, walk, a.data(), b.data(), want.data());
            CHECK(difference(y, want, 16) == "");

            const auto kept = [](bool is, const Buffer<S>& x) { return is ? x.data() : nullptr; };
            for (std::size_t operand : {0u, 1u}) {
                const Keeps keeps = operand == 0 ? F::for_a : F::for_b;
                const auto& back = operand == 0 ? fast<S>().zip_back_a : fast<S>().zip_back_b;
                const auto& plain_back = operand == 0 ? plain<S>().zip_back_a : plain<S>().zip_back_b;
                const Write how = dice.how();
                INFO("operand " << operand << ", reach " << walk.operand_size[operand] << ", "
                                << write_names[static_cast<int>(how)]);
                const auto d = dice.destination<S>(walk.operand_size[operand], how);
                const Buffer<S> want_d = d;
                back[slot](&f, walk, dy.data(), kept(keeps.a, a), kept(keeps.b, b), kept(keeps.y, want),
                           into(d, how));
                plain_back[slot](&f, walk, dy.data(), kept(keeps.a, a), kept(keeps.b, b), kept(keeps.y, want),
                                 into(want_d, how));
                const double terms =
                    static_cast<double>(walk.size) /
                    static_cast<double>(std::max<std::size_t>(walk.operand_size[operand], 1));
                CHECK(difference(d, want_d, 64, 1 + terms) == "");
            }
        });
    }
}

TEMPLATE_TEST_CASE("zip: has the same bits for one element, in a row and broadcast", "", float, double) {
    using S = TestType;
    Dice dice(7);
    each_functor<BinaryOps>([&](std::size_t slot, auto f) {
        const auto [low, high] = domain<decltype(f)>();
        INFO(std::string_view(f.name) << ", " << dice.text());
        constexpr std::size_t n = 70;
        const auto a = dice.numbers<S>(n, low, high), b = dice.numbers<S>(1, low, high);
        const Buffer<S> together(n), one_by_one(n), strided(n);
        const auto walk = [](std::size_t size, std::ptrdiff_t step_a) {
            StridedIndex<2> made;
            made.rank = 1;
            made.extent[0] = made.size = size;
            made.stride[0][0] = step_a;
            made.stride[1][0] = 0;
            made.operand_size = {size, 1};
            return made;
        };
        fast<S>().zip[slot](&f, walk(n, 1), a.data(), b.data(), together.data());
        for (std::size_t i = 0; i < n; ++i)
            fast<S>().zip[slot](&f, walk(1, 1), a.data() + i, b.data(), one_by_one.data() + i);
        CHECK(bit_difference(one_by_one, together) == "");
        fast<S>().zip[slot](&f, walk(n / 2, 2), a.data(), b.data(), strided.data());
        for (std::size_t i = 0; i < n / 2; ++i)
            if (!same_bits(strided[i], together[2 * i])) FAIL("every second element: " << i);
    });
}

TEMPLATE_TEST_CASE("zip_back: a gradient summed in two calls has the bits of one call", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(60u); ++seed) {
        Dice dice(seed);
        const std::size_t rows = 2 + dice.upto(20), cut = 1 + dice.upto(rows - 2),
                          width = dice.pick<std::size_t>({1, 3, 10, 16, 17, 100});
        // The operand is broadcast over all rows, and has `width` numbers or a single number.
        const bool single = dice.coin();
        const auto walk = [&](std::size_t of) {
            StridedIndex<2> made;
            made.rank = single ? 1 : 2;
            made.size = of * width;
            if (single) {
                made.extent = {of * width};
                made.stride = {{{1}, {0}}};
            } else {
                made.extent = {of, width};
                made.stride[0] = {static_cast<std::ptrdiff_t>(width), 1};
                made.stride[1] = {0, 1};
            }
            made.operand_size = {of * width, single ? 1 : width};
            return made;
        };
        each_functor<BinaryOps>([&](std::size_t slot, auto f) {
            using F = decltype(f);
            const auto [low, high] = domain<F>();
            INFO(std::string_view(F::name) << ", " << dice.text() << ": " << rows << " rows of " << width
                                           << ", cut after " << cut << (single ? ", one number" : ""));
            const auto a = dice.numbers<S>(rows * width, low, high), dy = dice.numbers<S>(rows * width);
            const auto b = dice.numbers<S>(walk(rows).operand_size[1], low, high);
            const Buffer<S> y(rows * width);
            fast<S>().zip[slot](&f, walk(rows), a.data(), b.data(), y.data());
            const Buffer<S> once(b.size()), twice(b.size());
            const auto back = [&](std::size_t first, std::size_t some, const Buffer<S>& d, Write how) {
                const std::size_t at = first * width;
                fast<S>().zip_back_b[slot](
                    &f, walk(some), dy.data() + at, F::for_b.a ? a.data() + at : nullptr,
                    F::for_b.b ? b.data() : nullptr, F::for_b.y ? y.data() + at : nullptr, into(d, how));
            };
            back(0, rows, once, Write::set);
            back(0, cut, twice, Write::set);
            back(cut, rows - cut, twice, Write::add);
            CHECK(bit_difference(twice, once) == "");
        });
    }
}

TEMPLATE_TEST_CASE("where, where_back: agree with the plain loop", "", float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(400u); ++seed) {
        Dice dice(seed);
        const auto walk = seed < 16 ? Dice::rows_of_terms<3>(seed, 1 + seed / 8)
                                    : dice.walk<3>(dice.extents(1 + dice.upto(5)), dice.coin());
        INFO(dice.text() << ", size " << walk.size);
        const auto c = dice.integers(walk.operand_size[0], 2);
        const auto a = dice.numbers<S>(walk.operand_size[1]), b = dice.numbers<S>(walk.operand_size[2]),
                   dy = dice.numbers<S>(walk.size);
        const Buffer<S> y(walk.size, dice.upto(5)), want(walk.size);
        fast<S>().where(walk, c.data(), a.data(), b.data(), y.data());
        plain<S>().where(walk, c.data(), a.data(), b.data(), want.data());
        CHECK(bit_difference(y, want) == "");
        for (std::size_t place : {1u, 2u}) {
            const Write how = dice.how();
            const auto d = dice.destination<S>(walk.operand_size[place], how);
            const Buffer<S> want_d = d;
            fast<S>().where_back(walk, c.data(), dy.data(), static_cast<int>(place), into(d, how));
            plain<S>().where_back(walk, c.data(), dy.data(), static_cast<int>(place), into(want_d, how));
            INFO("place " << place << ", " << write_names[static_cast<int>(how)]);
            CHECK(difference(d, want_d, 64, 1 + static_cast<double>(walk.size)) == "");
        }
    }
}

TEMPLATE_TEST_CASE("dropout: has the bits of the plain loop, and an item's mask depends only on the item", "",
                   float, double) {
    using S = TestType;
    for (unsigned seed = 0; seed < launches_of(200u); ++seed) {
        Dice dice(seed);
        const std::size_t items = dice.upto(5),
                          width = dice.pick<std::size_t>({0, 1, 2, 3, 4, 5, 17, 64, 255, 256, 257, 1000});
        const std::uint64_t share = dice.pick<std::uint64_t>(
            {0, 1u << 30, 1u << 31, (std::uint64_t{1} << 32) - 1, std::uint64_t{1} << 32});
        const DropoutMask mask{seed, dice.upto(9), dice.upto(99), share};
        const Write how = dice.how();
        INFO(dice.text() << ", " << items << " items of " << width << ", dropped " << share << " of 2^32, "
                         << write_names[static_cast<int>(how)]);
        const auto x = dice.numbers<S>(items * width, 0.5, 2);
        const auto y = dice.destination<S>(items * width, how);
        const Buffer<S> want = y;
        fast<S>().dropout(x.data(), mask, S(1.5), into(y, how), items, width);
        plain<S>().dropout(x.data(), mask, S(1.5), into(want, how), items, width);
        CHECK(bit_difference(y, want) == "");
        if (items < 2) continue;

        const Buffer<S> whole(items * width), part(width);
        fast<S>().dropout(x.data(), mask, S(1.5), into(whole, Write::set), items, width);
        DropoutMask of_last = mask;
        of_last.first += items - 1;
        fast<S>().dropout(x.data() + (items - 1) * width, of_last, S(1.5), into(part, Write::set), 1, width);
        for (std::size_t j = 0; j < width; ++j) REQUIRE(same_bits(part[j], whole[(items - 1) * width + j]));
    }
}

TEMPLATE_TEST_CASE("dropout: keeps the expected share of elements", "", float, double) {
    using S = TestType;
    constexpr std::size_t n = 100000;
    const Buffer<S> x(n), y(n);
    std::fill(x.begin(), x.end(), S(1));
    for (const double p : {0.1, 0.5, 0.8}) {
        fast<S>().dropout(x.data(), {7, 1, 0, static_cast<std::uint64_t>(p * 0x1p32)}, S(1),
                          into(y, Write::set), 10, n / 10);
        const double dropped = static_cast<double>(std::count(y.begin(), y.end(), S(0))) / n;
        INFO(p << ": " << dropped);
        CHECK(std::abs(dropped - p) < 5 * std::sqrt(p * (1 - p) / n));
    }
}

}  // namespace tally::test
