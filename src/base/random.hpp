// Computes random numbers without a state. Each number depends only on the seed, the stream and the index.
//
// Use a separate stream for each purpose, because all kinds of numbers use the same bits of a stream.
// Integers and uniformly distributed numbers are computed exactly. Normal numbers are computed only with + - * / sqrt and
// fma, for which IEEE 754 defines the rounding. Every compiler and device computes exactly the same numbers.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

namespace tally::random {

namespace detail {
using Words = std::array<std::uint32_t, 4>;  // a block of 128 random bits

// The generator is Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
constexpr Words philox(Words counter, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                   static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
        key[0] += 0x9E3779B9;
        key[1] += 0xBB67AE85;
    }
    return counter;
}

constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

constexpr Words words(std::uint64_t seed, std::uint64_t stream, std::uint64_t block) {
    return philox({low(block), high(block), low(stream), high(stream)}, {low(seed), high(seed)});
}

constexpr std::uint64_t join(std::uint32_t low_half, std::uint32_t high_half) {
    return std::uint64_t{high_half} << 32 | low_half;
}

// A block of random bits yields 4 floats or 2 doubles.
template <class S> inline constexpr std::size_t lanes = sizeof(Words) / sizeof(S);

template <class S> constexpr S uniform(const Words& words, std::size_t lane) {
    if constexpr (sizeof(S) == 4)
        return static_cast<S>(words[lane] >> 8) * S(0x1p-24);
    else
        return static_cast<S>(join(words[2 * lane], words[2 * lane + 1]) >> 11) * S(0x1p-53);
}

// Maps a number in [0, 1) to [lo, hi). A value that rounds up to hi becomes lo.
template <class S> S between(S unit, S lo, S hi) {
    const S value = std::fma(unit, hi - lo, lo);
    return value < hi ? value : lo;
}

// Returns log(x) for a normalized x = 2^e m > 0 with m in [sqrt(1/2), sqrt(2)). The series of artanh yields
// log m = 2 artanh(s) with s = (m - 1) / (m + 1).
inline double log(double x) {
    auto bits = std::bit_cast<std::uint64_t>(x);
    auto exponent = static_cast<int>(bits >> 52) - 1023;
    double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) | std::uint64_t{1023} << 52);
    if (m > std::numbers::sqrt2) {
        m *= 0.5;
        ++exponent;
    }
    const double s = (m - 1) / (m + 1), z = s * s;  // z < 0.0295: the series ends below 2^-53
    double sum = 1.0 / 23;
    for (int n = 21; n >= 3; n -= 2) sum = std::fma(sum, z, 1.0 / n);
    const double tail = 2 * s * z * sum;
    return std::fma(static_cast<double>(exponent), std::numbers::ln2, std::fma(2, s, tail));
}

struct Point {
    double x, y;
};

// Returns the point on the unit circle at the angle 2 pi turn / 2^64. The split into quarters is exact.
inline Point on_circle(std::uint64_t turn) {
    const std::uint64_t quarter = (turn + (std::uint64_t{1} << 61)) >> 62;
    const auto remainder =
        static_cast<double>(static_cast<std::int64_t>(turn << 2));  // 2^-64 quarters, in [-1/2, 1/2)
    const double angle = remainder * 0x1p-64 * (std::numbers::pi / 2), square = -angle * angle;
    double cos = 1, sin = 1;  // Taylor series, from the last term to the first
    for (int n = 18; n >= 2; n -= 2) {
        cos = std::fma(cos * square, 1.0 / (n * (n - 1)), 1.0);
        sin = std::fma(sin * square, 1.0 / (n * (n + 1)), 1.0);
    }
    sin *= angle;
    const std::array<Point, 4> in_quarter{{{cos, sin}, {-sin, cos}, {-cos, -sin}, {sin, -cos}}};
    return in_quarter[quarter & 3];
}

// Computes two independent standard normal numbers (Box and Muller) from a radius in (0, 1) and an angle.
inline Point normal_pair(double radius, std::uint64_t turn) {
    const double length = std::sqrt(-2 * log(radius));
    const Point point = on_circle(turn);
    return {length * point.x, length * point.y};
}

// Returns the normal numbers 2 * pair and 2 * pair + 1 of a block, computed in double precision.
template <class S> Point normals(const Words& words, std::size_t pair) {
    if constexpr (sizeof(S) == 4)
        return normal_pair((words[2 * pair] + 0.5) * 0x1p-32, join(0, words[2 * pair + 1]));
    else
        return normal_pair((static_cast<double>(join(words[0], words[1]) >> 12) + 0.5) * 0x1p-52,
                           join(words[2], words[3]));
}

constexpr std::uint32_t bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    return detail::words(seed, stream, index / 4)[index % 4];
}

// Returns a uniform number in [0, 1) with 24 random bits for float and 53 random bits for double.
template <class S> constexpr S uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    constexpr std::size_t lanes = detail::lanes<S>;
    return detail::uniform<S>(detail::words(seed, stream, index / lanes), index % lanes);
}

// Returns a uniform number in [lo, hi).
template <class S> S uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, S lo, S hi) {
    return detail::between(uniform<S>(seed, stream, index), lo, hi);
}

// Returns an unbiased integer below n, or 0 if n is 0. Draws numbers until one of the numbers is below n.
constexpr std::uint64_t below(std::uint64_t seed, std::uint64_t stream, std::uint64_t index,
                              std::uint64_t n) {
    if (n < 2) return 0;
    const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(n - 1);
    for (Words words = detail::words(seed, stream, index);;
         words = detail::philox(words, {detail::low(seed), detail::high(seed)})) {
        for (const std::size_t half : {0u, 2u}) {
            const std::uint64_t drawn = detail::join(words[half], words[half + 1]) & mask;
            if (drawn < n) return drawn;
        }
    }
}

// Returns a standard normal number, whose absolute value is at most 6.8 for float and 8.6 for double.
template <class S> S normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    constexpr std::size_t lanes = detail::lanes<S>;
    const detail::Point pair =
        detail::normals<S>(detail::words(seed, stream, index / lanes), index % lanes / 2);
    return static_cast<S>(index % 2 == 0 ? pair.x : pair.y);
}

// fill_uniform() and fill_normal() set out[i] to the random number with the index first + i.
template <class S> void fill_uniform(std::span<S> out, std::uint64_t seed, std::uint64_t stream, S lo = 0,
                                     S hi = 1, std::uint64_t first = 0);
template <class S> void fill_normal(std::span<S> out, std::uint64_t seed, std::uint64_t stream, S mean = 0,
                                    S deviation = 1, std::uint64_t first = 0);

// Returns the numbers 0 to n - 1 in random order. All n! orders have the same probability (Fisher and Yates).
std::vector<std::int32_t> permutation(std::size_t n, std::uint64_t seed, std::uint64_t stream);
}  // namespace detail

}  // namespace tally::random
