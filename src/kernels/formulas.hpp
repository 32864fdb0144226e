// Computes exp, log, tanh, erf, sin, cos and pow for float, double, a SIMD batch and a GPU thread.
//
// The functions use only + - * /, fma and bit operations, which all processors round in the same way. The
// results therefore have the same bits on every processor, unlike results of the C library. The polynomials
// are Chebyshev interpolations with errors below a tenth of a unit in the last place. For very large numbers
// sin and cos call the C library.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

namespace tally {

namespace detail {
template <class T> constexpr T select(bool condition, T a, T b) { return condition ? a : b; }

template <class T> constexpr T as(double c) {
    if constexpr (requires { typename T::batch_bool_type; })
        return T(static_cast<typename T::value_type>(c));
    else
        return static_cast<T>(c);
}
}  // namespace detail

namespace formula {

using detail::as, detail::select;

// ---- functions that the formulas use; src/cpu has the same functions for SIMD batches ----

template <std::floating_point S> constexpr S fused(S a, S b, S c) {
    using std::fma;
    return fma(a, b, c);
}
constexpr std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
constexpr std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
constexpr float number(std::uint32_t word) { return std::bit_cast<float>(word); }
constexpr double number(std::uint64_t word) { return std::bit_cast<double>(word); }
constexpr bool all(bool condition) { return condition; }

template <class T> struct NumberIn { using type = T; };
template <class T>
requires requires { typename T::batch_bool_type; }
struct NumberIn<T> {
    using type = typename T::value_type;
};
template <class T> inline constexpr bool is_float = std::same_as<typename NumberIn<T>::type, float>;

// Returns `for_float` or `for_double`, depending on the precision of T.
template <class T> constexpr T either(double for_float, double for_double) {
    return as<T>(is_float<T> ? for_float : for_double);
}
template <class T> constexpr auto word(std::uint32_t of_float, std::uint64_t of_double) {
    using Word = decltype(bits(T()));
    if constexpr (is_float<T>)
        return Word(of_float);
    else
        return Word(of_double);
}
template <class T> inline constexpr int mantissa = is_float<T> ? 23 : 52;

// Evaluates the polynomial c + x (more[0] + x (more[1] + ...)).
template <class T> constexpr T polynomial(T, double c) { return as<T>(c); }
template <class T, class... More> constexpr T polynomial(T x, double c, More... more) {
    return fused(x, polynomial(x, more...), as<T>(c));
}

// Adding to_whole() rounds a number to an integer n, and stores n in the last bits of the sum.
template <class T> constexpr T to_whole() { return either<T>(0x1.8p23, 0x1.8p52); }

// Returns 2^n for an integer n, where the argument `shifted` is n + to_whole().
template <class T> constexpr T power_of_two(T shifted) {
    return number((bits(shifted) << mantissa<T>)+word<T>(0x3f800000, 0x3ff0000000000000));
}

template <class T> constexpr T with_sign_of(T positive, T x) {
    return number(bits(positive) | (bits(x) & word<T>(0x80000000, 0x8000000000000000)));
}

template <class T> constexpr T not_above(T most, T x) { return select(x > most, most, x); }  // NaN stays NaN

// ---- exp: x = n log 2 + r, and e^x = 2^n e^r ----

template <class T> struct Reduced { T shifted, n, r; };

template <class T, class... Low> constexpr Reduced<T> reduced(T x, Low... low) {
    const T shifted = fused(x, as<T>(0x1.71547652b82fep+0), to_whole<T>()), n = shifted - to_whole<T>();
    const T r = fused(n, either<T>(-0x1.62e4p-1, -0x1.62e42fefap-1), x);
    return {shifted, n, (fused(n, either<T>(-0x1.7f7d1cp-20, -0x1.cf79abc9e3b3ap-40), r) + ... + low)};
}

// Returns e^r - 1 for |r| <= log(2) / 2.
template <class T> constexpr T exp_less_one(T r) {
    if constexpr (is_float<T>)
        return fused(r * r,
                     polynomial(r, 0x1.000000p-1, 0x1.555556p-3, 0x1.5554e8p-5, 0x1.1110e0p-7, 0x1.6d43b0p-10,
                                0x1.a1256cp-13),
                     r);
    else
        return fused(r * r,
                     polynomial(r, 0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100bep-7,
                                0x1.6c16c16c162c3p-10, 0x1.a01a01abf85abp-13, 0x1.a01a01a6e1e2ap-16,
                                0x1.71de01fdbf9cap-19, 0x1.27e4db46cddd1p-22, 0x1.af4e554377204p-26,
                                0x1.1f7340dbc337ep-29),
                     r);
}

// Returns e^(x + low), where `low` is smaller than one unit in the last place of x.
template <class T, class... Low> [[gnu::always_inline]] constexpr T exp(T x, Low... low) {
    using std::abs;
    if (all(abs(x) < either<T>(87, 708))) {
        const auto [shifted, n, r] = reduced(x, low...);
        const T near_one = exp_less_one(r) + as<T>(1);
        return number(bits(near_one) + (bits(shifted) << mantissa<T>));
    }
    const T inside = not_above(either<T>(89, 710), x);
    const auto [shifted, n, r] =
        reduced(select(inside < either<T>(-104, -746), either<T>(-104, -746), inside), low...);
    const T half = fused(n, as<T>(0.5), to_whole<T>()), rest = n - (half - to_whole<T>());
    return (exp_less_one(r) + as<T>(1)) * power_of_two(half) * power_of_two(rest + to_whole<T>());
}

// Returns e^x - 1.
template <class T> constexpr T expm1(T x) {
    using std::abs;
    const T inside = not_above(either<T>(89, 710), x);
    const auto [shifted, n, r] = reduced(select(inside < as<T>(-40), as<T>(-40), inside));
    const T half_power = power_of_two(shifted - as<T>(1));  // 2^1024 would be too large
    const T half = fused(half_power, exp_less_one(r), half_power - as<T>(0.5));
    return select(abs(x) < either<T>(0x1p-30, 0x1p-60), x, half + half);  // -0 stays
}

// ---- log: x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh(s), s = (m - 1) / (m + 1) ----

template <class T> struct Split {
    T k, f;  // f = m - 1
};

template <class T> constexpr Split<T> split(T x) {  // x > 0 and not below the smallest normal number
    const auto root = word<T>(0x3f3504f3, 0x3fe6a09e667f3bcd);
    const auto raised = bits(x) + (word<T>(0x3f800000, 0x3ff0000000000000) - root);
    const T k = number((raised >> mantissa<T>) | word<T>(0x4b000000, 0x4330000000000000));
    const T m = number((raised & word<T>(0x007fffff, 0x000fffffffffffff)) + root);
    return {k - either<T>(0x1p23 + 127, 0x1p52 + 1023), m - as<T>(1)};
}

// Returns (2 artanh(s) - 2 s) / s, given z = s * s.
template <class T> constexpr T artanh_tail(T z) {
    if constexpr (is_float<T>)
        return z * polynomial(z, 0x1.555556p-1, 0x1.9999ecp-2, 0x1.245c0ap-2, 0x1.dddae0p-3);
    else
        return z * polynomial(z, 0x1.5555555555555p-1, 0x1.9999999999a3ap-2, 0x1.2492492476765p-2,
                              0x1.c71c7201f207cp-3, 0x1.745cf8c4c7bcap-3, 0x1.3b1c42e3df02cp-3,
                              0x1.0fbd2bafa02d6p-3, 0x1.0c1263e1bac13p-3);
}

template <class T> constexpr T log_of_split(Split<T> x) {
    const T s = x.f / (as<T>(2) + x.f), half_square = as<T>(0.5) * x.f * x.f;
    const T tail = fused(-s, half_square + artanh_tail(s * s), half_square);  // f - log(1 + f)
    const T rest = x.f - fused(x.k, either<T>(-0x1.7f7d1cp-20, -0x1.cf79abc9e3b3ap-40), tail);
    return fused(x.k, either<T>(0x1.62e4p-1, 0x1.62e42fefap-1), rest);
}

template <class T> constexpr T log(T x) {
    using Number = std::numeric_limits<typename NumberIn<T>::type>;
    const T smallest = as<T>(static_cast<double>(Number::min())),
            largest = as<T>(static_cast<double>(Number::max()));
    if (all((x >= smallest) & (x <= largest))) return log_of_split(split(x));
    const auto tiny = x < smallest;
    Split<T> parts = split(select(tiny, x * as<T>(0x1p54), x));
    parts.k = select(tiny, parts.k - as<T>(54), parts.k);
    const T infinity = as<T>(std::numeric_limits<double>::infinity()),
            nan = as<T>(std::numeric_limits<double>::quiet_NaN());
    const T y = select(x > as<T>(0), log_of_split(parts), select(x == as<T>(0), -infinity, nan));
    return select(x == infinity, x, y);
}

// Returns log(1 + x), corrected for the rounding of 1 + x (Kahan).
template <class T> constexpr T log1p(T x) {
    const T one = as<T>(1), u = one + x, y = log(u);
    return select(u == one, x, select(u == x, y, y * (x / (u - one))));
}

// ---- tanh = (e^2x - 1) / (e^2x + 1) ----

template <class T> constexpr T tanh(T x) {
    using std::abs;
    const T positive = not_above(either<T>(10, 20), abs(x));  // tanh of larger numbers is 1
    const auto [shifted, n, r] = reduced(positive + positive);
    const T power = power_of_two(shifted), e = fused(power, exp_less_one(r), power - as<T>(1));
    return with_sign_of(e / (e + as<T>(2)), x);
}

// ---- erf: a series in x * x up to 1; above it, 1 - e^(-x * x) g((x - 2) / (x + 2)) ----

template <class T> constexpr T erf(T x) {
    using std::abs;
    const T positive = abs(x);
    T below_one, g;
    const T z = x * x;
    if constexpr (is_float<T>)
        below_one = fused(positive,
                          polynomial(z, 0x1.06eba8p-3, -0x1.812746p-2, 0x1.ce2f08p-4, -0x1.b829c8p-6,
                                     0x1.562a60p-8, -0x1.bccf66p-11, 0x1.d88750p-14, -0x1.445f48p-17),
                          positive);
    else
        below_one = fused(positive,
                          polynomial(z, 0x1.06eba8214db69p-3, -0x1.812746b0379e7p-2, 0x1.ce2f21a042bdep-4,
                                     -0x1.b82ce312889bap-6, 0x1.565bcd0e6502dp-8, -0x1.c02db3feeb579p-11,
                                     0x1.f9a326c233146p-14, -0x1.f4d2561aeafd4p-17, 0x1.b9e6509b9867dp-20,
                                     -0x1.5f6d925a0bc7ap-23, 0x1.fc4356498c2d9p-27, -0x1.4e607b41a6416p-30,
                                     0x1.7f072188e194dp-34, -0x1.29b9f1b3df556p-38),
                          positive);
    if (all(positive < as<T>(1))) return with_sign_of(below_one, x);
    const T t = select(positive < as<T>(1), as<T>(1), not_above(either<T>(4, 6), positive));
    const T v = (t - as<T>(2)) / (t + as<T>(2));
    if constexpr (is_float<T>)
        g = polynomial(v, 0x1.058670p-2, -0x1.b57038p-2, 0x1.eeed8cp-3, -0x1.437814p-4, 0x1.d6e606p-9,
                       0x1.c017fap-8);
    else
        g = polynomial(v, 0x1.058671b52c776p-2, -0x1.b57034efd3f69p-2, 0x1.eeea7dc8a7932p-3,
                       -0x1.437f0b68c2dc0p-4, 0x1.e9471595c0b9dp-9, 0x1.ca95ed5c92a4bp-8,
                       -0x1.bc25a2a5685b8p-11, -0x1.016b61e9c90a9p-10, 0x1.6d5bf00483674p-15,
                       0x1.6dac8e32716eep-13, 0x1.ce18d5b499621p-16, -0x1.cfd845cfda3f9p-16,
                       -0x1.d8072f8b2af1ep-17, 0x1.e89749bb276c3p-20, 0x1.06de90fce20e3p-18);
    const T above_one = fused(-exp(-(t * t)), g, as<T>(1));
    return with_sign_of(select(positive < as<T>(1), below_one, above_one), x);
}

// ---- sin and cos: x = n pi / 2 + r ----

// Returns the limit for |x| below which the sum of three constants represents pi / 2 precisely enough.
template <class T> constexpr T far_turn() { return either<T>(0x1p20, 0x1p30); }

// Returns sin(x + quarter * pi / 2).
template <int quarter, class T> constexpr T sin_of_turn(T x) {
    const T shifted = fused(x, as<T>(0x1.45f306dc9c883p-1), to_whole<T>()), n = shifted - to_whole<T>();
    T r = fused(n, either<T>(-0x1.921fb6p+0, -0x1.921fb54442d18p+0), x);
    r = fused(n, either<T>(0x1.777a5cp-25, -0x1.1a62633145c07p-54), r);
    r = fused(n, either<T>(0x1.ee59dap-50, 0x1.f1976b7ed8fbcp-110), r);
    const T z = r * r;
    T sine, cosine;
    if constexpr (is_float<T>) {
        sine = polynomial(z, -0x1.555556p-3, 0x1.11110ep-7, -0x1.a01366p-13, 0x1.6da8ecp-19);
        cosine = polynomial(z, 0x1.555554p-5, -0x1.6c12aap-10, 0x1.9bc2d4p-16);
    } else {
        sine = polynomial(z, -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a019880p-13,
                          0x1.71de3a544a6cep-19, -0x1.ae6453ecab5c4p-26, 0x1.612161267019ep-33,
                          -0x1.ab066192d3e8fp-41);
        cosine = polynomial(z, 0x1.5555555555555p-5, -0x1.6c16c16c1691fp-10, 0x1.a01a019f3dde1p-16,
                            -0x1.27e4fa0241f7cp-22, 0x1.1eeb52a201da3p-29, -0x1.906dbf4fda044p-37);
    }
    sine = fused(r * z, sine, r);
    cosine = fused(z * z, cosine, fused(z, as<T>(-0.5), as<T>(1)));
    const auto quadrant = bits(shifted + as<T>(quarter));
    const auto y = select((quadrant & word<T>(1, 1)) == word<T>(0, 0), bits(sine), bits(cosine));
    const T signed_y = number(y ^ ((quadrant & word<T>(2, 2)) << (is_float<T> ? 30 : 62)));
    return quarter == 0 ? select(x == as<T>(0), x, signed_y) : signed_y;  // -0 stays
}

template <std::floating_point S> constexpr S sin(S x) {
    using std::abs, std::sin;
    return abs(x) < far_turn<S>() ? sin_of_turn<0>(x) : sin(x);
}
template <std::floating_point S> constexpr S cos(S x) {
    using std::abs, std::cos;
    return abs(x) < far_turn<S>() ? sin_of_turn<1>(x) : cos(x);
}

// ---- pow: e^(p log x), with log x as the sum of two numbers ----

// Returns log x for a positive finite double, as the sum of two numbers.
template <class T> struct LongLog { T high, low; };
template <class T> constexpr LongLog<T> long_log(T x) {
    const auto tiny = x < as<T>(std::numeric_limits<double>::min());
    const Split<T> parts = split(select(tiny, x * as<T>(0x1p54), x));
    const T k = select(tiny, parts.k - as<T>(54), parts.k), f = parts.f;
    const T sum = as<T>(2) + f, sum_low = f - (sum - as<T>(2));
    const T s = f / sum, s_low = (fused(-s, sum, f) - s * sum_low) / sum;  // s of artanh
    const T z = s * s, z_low = fused(s, s, -z) + (s + s) * s_low;
    const T cube = s * z, cube_low = fused(s, z, -cube) + s_low * z + s * z_low;
    const T third = as<T>(0x1.5555555555555p-1), third_low = as<T>(0x1.5555555555555p-55);  // 2/3
    const T term = cube * third, term_low = fused(cube, third, -term) + cube * third_low + cube_low * third;
    const T rest =
        cube * z *
        polynomial(z, 0x1.999999999999fp-2, 0x1.249249248e475p-2, 0x1.c71c71d811c69p-3, 0x1.745d09d5cea91p-3,
                   0x1.3b18c07ffffa4p-3, 0x1.1017b2e6717d6p-3, 0x1.0884ab56572e0p-3);
    const T whole = k * as<T>(0x1.62e42fefap-1);  // exact
    const T first = whole + (s + s), first_low = (s + s) - (first - whole);
    const T high = first + term, high_low = term - (high - first);
    const T low =
        high_low + (first_low + (term_low + rest + (s_low + s_low) + k * as<T>(0x1.cf79abc9e3b3ap-40)));
    return {high + low, low - ((high + low) - high)};
}

// Returns x to the power of p for doubles. x must be positive and finite, and p finite.
template <class T> constexpr T pow_of_positive(T x, T p) {
    const LongLog<T> by = long_log(x);
    const T high = p * by.high, low = fused(p, by.high, -high) + p * by.low;
    const T most = as<T>(710), least = as<T>(-746);
    return exp(high, select((high < most) & (high > least), low, as<T>(0)));
}

// Returns x to the power of p for floats stored as doubles, for which log(x) as one number is precise enough.
template <class T> constexpr T short_pow_of_positive(T x, T p) { return exp(p * log(x)); }

template <std::floating_point S> constexpr S pow(S x, S p) {
    using std::abs, std::floor, std::signbit;
    constexpr S infinity = std::numeric_limits<S>::infinity();
    if (p == 0 || x == 1) return 1;
    if (!(x == x) || !(p == p)) return x + p;
    if (p == 1) return x;
    if (p == 2) return x * x;
    const S size = abs(x);
    if (abs(p) == infinity) return size == 1 ? S(1) : (size < 1) == (p < 0) ? infinity : S(0);
    const bool whole = floor(p) == p, odd = whole && floor(p / 2) != p / 2;
    const S sign = odd && signbit(x) ? S(-1) : S(1);
    if (size == 0 || size == infinity) return sign * ((size == 0) == (p < 0) ? infinity : S(0));
    if (x < 0 && !whole) return std::numeric_limits<S>::quiet_NaN();
    if constexpr (is_float<S>)
        return sign *
               static_cast<S>(short_pow_of_positive(static_cast<double>(size), static_cast<double>(p)));
    else
        return sign * pow_of_positive(size, p);
}

}  // namespace formula
}  // namespace tally
