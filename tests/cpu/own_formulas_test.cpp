// Tests the errors of exp, log, tanh, erf, sin, cos and pow. Their values must not depend on the position in
// an array or on the CPU.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernel_testing.hpp"
#include "tally/base/checksum.hpp"
#include "tally/kernels/formulas.hpp"

namespace tally::test {
namespace {

// Returns numbers with all exponents and both signs, including zeros, subnormal numbers, infinities and NaN.
template <class S> Buffer<S> all_sizes() {
    using Word = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;
    constexpr int mantissa = formula::mantissa<S>, width = 8 * sizeof(S);
    constexpr Word exponents = Word(1) << (width - 1 - mantissa);
    constexpr Word per_exponent = sizeof(S) == 4 ? 64 : 16;
    const Buffer<S> made(2 * exponents * per_exponent);
    Word mixed = 1;
    std::size_t at = 0;
    for (Word sign = 0; sign < 2; ++sign)
        for (Word exponent = 0; exponent < exponents; ++exponent)
            for (Word i = 0; i < per_exponent; ++i) {
                // The first three mantissas are 0, 1 and all ones, and the other mantissas are pseudo-random.
                mixed = mixed * Word(2891336453u) + 1;
                const Word rest = i < 2 ? i : i == 2 ? Word(-1) : mixed ^ (mixed >> (width / 2));
                made[at++] = formula::number(sign << (width - 1) | exponent << mantissa |
                                             (rest & ((Word(1) << mantissa) - 1)));
            }
    return made;
}

template <class S> Buffer<S> neighbours_mixed(const Buffer<S>& x) {
    const Buffer<S> made(x.size());
    const std::size_t step = 7919;  // a prime that does not divide the size, so that every number occurs once
    for (std::size_t i = 0; i < x.size(); ++i) made[i] = x[i * step % x.size()];
    return made;
}

template <class S> std::uint64_t checksum(const Buffer<S>& y) {
    for (S& v : y)
        // The sign and payload of a NaN may differ, so every NaN is replaced by the same NaN.
        if (std::isnan(v)) v = std::numeric_limits<S>::quiet_NaN();
    return checksum_of(y.data(), y.size() * sizeof(S));
}

template <class S> double error_in_ulps(S got, long double want) {
    if (std::isnan(want)) return std::isnan(got) ? 0 : 1e300;
    const S rounded = static_cast<S>(want), size = std::abs(rounded);
    if (got == rounded) return 0.5;
    if (std::isinf(got) || std::isinf(rounded) ||
        std::isnan(got)) {  // a result that should be the largest number may round to infinity
        const S most = std::numeric_limits<S>::max();
        return (got == most || got == -most || size == most) && std::signbit(got) == std::signbit(rounded)
                   ? 1
                   : 1e300;
    }
    const S next = std::nextafter(size, std::numeric_limits<S>::infinity());
    const S unit = std::isinf(next) ? size - std::nextafter(size, S(0)) : next - size;
    return static_cast<double>(std::abs(static_cast<long double>(got) - want) / unit);
}

template <class S, class F, class Exact> void check_error(const char* name, double bound, F f, Exact exact) {
    const auto look = [&](const Buffer<S>& x) {
        for (const S v : x) {
            const double error = error_in_ulps(f(v), exact(static_cast<long double>(v)));
            if (!(error <= bound))
                FAIL(name << " of " << v << " is " << f(v) << ", wrong by " << error << " units");
        }
    };
    look(all_sizes<S>());
    Dice dice(3);
    INFO(dice.text());
    for (const double reach : {0.01, 1.0, 10.0, 100.0, 800.0}) look(dice.numbers<S>(20000, -reach, reach));
    for (S x : {S(0), -S(0)}) CHECK(same_bits(f(x), static_cast<S>(exact(static_cast<long double>(x)))));
    CHECK(true);
}

}  // namespace

// docs/mathematics.md, 2.6, states these error bounds.
TEMPLATE_TEST_CASE("formula: each function is within its bound for numbers of every size", "", float,
                   double) {
    using S = TestType;
    using L = long double;
    check_error<S>(
        "exp", 1, [](S x) { return formula::exp(x); }, [](L x) { return std::exp(x); });
    check_error<S>(
        "expm1", 2, [](S x) { return formula::expm1(x); }, [](L x) { return std::expm1(x); });
    check_error<S>(
        "log", 1, [](S x) { return formula::log(x); }, [](L x) { return std::log(x); });
    check_error<S>(
        "tanh", 3, [](S x) { return formula::tanh(x); }, [](L x) { return std::tanh(x); });
    check_error<S>(
        "erf", 2, [](S x) { return formula::erf(x); }, [](L x) { return std::erf(x); });
    check_error<S>(
        "sin", 2, [](S x) { return formula::sin(x); }, [](L x) { return std::sin(x); });
    check_error<S>(
        "cos", 2, [](S x) { return formula::cos(x); }, [](L x) { return std::cos(x); });
}

TEMPLATE_TEST_CASE("formula::pow: is within its bound and follows C for special values", "", float, double) {
    using S = TestType;
    const double reach = sizeof(S) == 4 ? 88 : 709;
    Dice dice(4);
    INFO(dice.text());
    const auto sizes = dice.numbers<double>(40000, -1, 1), shares = dice.numbers<double>(40000, -1.05, 1.05);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const S x = static_cast<S>(std::exp(reach * sizes[i] * std::pow(std::abs(sizes[i]), i % 5)));
        const S p = static_cast<S>(shares[i] * reach / std::log(static_cast<double>(x)));
        if (!std::isfinite(p)) continue;
        const double error = error_in_ulps(formula::pow(x, p), std::pow(static_cast<long double>(x), p));
        if (!(error <= 2.5)) FAIL(x << " to the power of " << p << " is wrong by " << error << " units");
    }
    const S inf = std::numeric_limits<S>::infinity(), nan = std::numeric_limits<S>::quiet_NaN(),
            tiny = std::numeric_limits<S>::denorm_min(), most = std::numeric_limits<S>::max();
    const std::vector<S> edges{0,      -S(0),   1,      -1,      2,       -2,    3,        -3,
                               S(0.5), S(-0.5), S(1.5), S(-1.5), S(0.25), inf,   -inf,     nan,
                               tiny,   -tiny,   most,   -most,   1024,    -1074, 16777216, 9007199254740993.};
    for (const S x : edges)
        for (const S p : edges) {
            const S got = formula::pow(x, p), want = std::pow(x, p);
            INFO(x << " to the power of " << p << " is " << got << ", not " << want);
            CHECK(std::isnan(got) == std::isnan(want));
            CHECK((std::isnan(want) || std::signbit(got) == std::signbit(want)));
            CHECK(error_in_ulps(got, static_cast<long double>(want)) <= 3);
        }
}

TEMPLATE_TEST_CASE("formula: a value does not depend on its position", "[library]", float, double) {
    using S = TestType;
    // On a GPU, CUDA's library computes the sine of very large numbers, so the last bits differ.
    const auto same_far_away = [](const Buffer<S>& x, const Buffer<S>& got, const Buffer<S>& want) {
        for (std::size_t i = 0; i < want.size(); ++i)
            if (std::abs(x[i]) >= formula::far_turn<S>() &&
                error_in_ulps(got[i], static_cast<long double>(want[i])) < 3)
                want[i] = got[i];
    };
    const Buffer<S> x = neighbours_mixed(all_sizes<S>()), dy(x.size());
    std::fill(dy.begin(), dy.end(), S(0.75));
    const std::size_t n = x.size() - 5;  // the last batch is not full
    each_functor<UnaryOps>([&](std::size_t slot, auto f) {
        using F = decltype(f);
        INFO(std::string_view(F::name));
        const Buffer<S> y(n, 3), want(n), dx(n), want_dx(n);
        for (std::size_t i = 0; i < n; ++i) want[i] = f.value(x[i]);
        fast<S>().map[slot](&f, x.data(), y.data(), n);
        constexpr bool turns = std::is_same_v<F, functor::Sin> || std::is_same_v<F, functor::Cos>;
        if constexpr (turns)
            if (is_on_gpu) same_far_away(x, y, want);
        CHECK(bit_difference(y, want) == "");
        const Buffer<S>& kept = F::keeps == Keep::output ? want : x;
        for (std::size_t i = 0; i < n; ++i) want_dx[i] = f.back(dy[i], kept[i]);
        fast<S>().map_back[slot](&f, dy.data(), F::keeps == Keep::nothing ? nullptr : kept.data(),
                                 into(dx, Write::set), n);
        if constexpr (turns)
            if (is_on_gpu) same_far_away(x, dx, want_dx);
        CHECK(bit_difference(dx, want_dx) == "");
    });
    const Buffer<S> p = neighbours_mixed(x), y(n), want(n);
    const functor::Pow pow;
    StridedIndex<2> walk;
    walk.rank = 1;
    walk.size = walk.extent[0] = walk.operand_size[0] = walk.operand_size[1] = n;
    walk.stride[0][0] = walk.stride[1][0] = 1;
    for (std::size_t i = 0; i < n; ++i) want[i] = pow.value(x[i], p[i]);
    fast<S>().zip[slot<functor::Pow, BinaryOps>](&pow, walk, x.data(), p.data(), y.data());
    CHECK(bit_difference(y, want) == "");
}

// No compiler, optimisation level or processor may change a bit of these values.
TEST_CASE("formula: the values have the recorded bits") {
    const auto of = [](auto f) {
        const auto y32 = all_sizes<float>();
        const auto y64 = all_sizes<double>();
        for (float& v : y32) v = f(v);
        for (double& v : y64) v = f(v);
        return checksum(y32) ^ checksum(y64) << 1;
    };
    CHECK(of([](auto x) { return formula::exp(x); }) == 0xe5ddc9e9c4ee3617);
    CHECK(of([](auto x) { return formula::expm1(x); }) == 0xb6129d3fe2de34e7);
    CHECK(of([](auto x) { return formula::log(x); }) == 0xb4ead3a5b08ffd59);
    CHECK(of([](auto x) { return formula::tanh(x); }) == 0x21fc23b01a4ce638);
    CHECK(of([](auto x) { return formula::erf(x); }) == 0x5c33789f8775bcbe);
    CHECK(of([](auto x) { return formula::pow(x, decltype(x)(2.7)); }) == 0x875e4b3097900704);
    const auto near = [](auto f) { return [f](auto x) { return std::abs(x) < 1e5f ? f(x) : x; }; };
    CHECK(of(near([](auto x) { return formula::sin(x); })) == 0x8813d91b8d63adb0);
    CHECK(of(near([](auto x) { return formula::cos(x); })) == 0x3827a3806aadd37e);
}

}  // namespace tally::test
