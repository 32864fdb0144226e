// Compares random numbers with published test vectors and distributions. Tests that a number depends only on
// seed, stream and index.
#include "tally/base/random.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <set>
#include <span>
#include <vector>

#include "catch.hpp"
#include "tally/base/error.hpp"

using namespace tally;

namespace {

// Returns sqrt(n) times the Kolmogorov-Smirnov distance between the sample and the true distribution.
template <class Distribution> double ks_distance(std::vector<double> sample, Distribution cumulative) {
    std::sort(sample.begin(), sample.end());
    const auto n = static_cast<double>(sample.size());
    double worst = 0;
    for (std::size_t i = 0; i < sample.size(); ++i) {
        const double expected = cumulative(sample[i]);
        worst = std::max(
            {worst, expected - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - expected});
    }
    return worst * std::sqrt(n);
}
constexpr double ks_critical = 1.95;  // random samples exceed it once in a thousand, but the seeds are fixed

double normal_cumulative(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace

// The expected numbers are the three lines "philox4x32 10" of the file tests/kat_vectors in
// https://github.com/DEShawResearch/random123
TEST_CASE("philox: gives the published answers") {
    using random::detail::philox;
    using random::detail::Words;
    STATIC_REQUIRE(philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    STATIC_REQUIRE(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
                   Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    STATIC_REQUIRE(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
                   Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: key and counter hold seed, stream and index") {
    STATIC_REQUIRE(random::detail::bits(0, 0, 0) == 0x6627e8d5);
    STATIC_REQUIRE(random::detail::bits(0, 0, 3) == 0x9b00dbd8);
    STATIC_REQUIRE(random::detail::bits(0xffffffffffffffff, 0xffffffffffffffff, 0) ==
                   random::detail::philox({0, 0, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff})[0]);
    STATIC_REQUIRE(
        random::detail::bits(0x299f31d0a4093822, 0x0370734413198a2e, 0x2400000000 + 0x243f6a84) ==
        random::detail::philox({0x090fdaa1, 0x9, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0})[0]);
    std::set<std::uint32_t> seen;
    for (std::uint64_t bit = 1; bit != 0; bit <<= 1) {  // changes each bit of seed, stream and index
        seen.insert(random::detail::bits(bit, 0, 0));
        seen.insert(random::detail::bits(0, bit, 0));
        seen.insert(random::detail::bits(0, 0, bit));
    }
    CHECK(seen.size() == 3 * 64);
}

TEMPLATE_TEST_CASE("random: numbers do not depend on the order of the draws", "", float, double) {
    using S = TestType;
    constexpr std::size_t n = 103;
    std::vector<S> uniforms(n), normals(n);
    random::detail::fill_uniform<S>(uniforms, 5, 6, S(-2), S(3));
    random::detail::fill_normal<S>(normals, 5, 6, S(1), S(0.5));
    for (std::size_t i = n; i-- > 0;) {  // calls for single numbers, in reverse order
        REQUIRE(uniforms[i] == random::detail::uniform<S>(5, 6, i, S(-2), S(3)));
        REQUIRE(normals[i] == std::fma(random::detail::normal<S>(5, 6, i), S(0.5), S(1)));
    }
    for (std::size_t first = 0; first < 9; ++first) {  // calls for parts that begin at any index
        std::vector<S> part(n - first);
        random::detail::fill_uniform<S>(part, 5, 6, S(-2), S(3), first);
        CHECK(std::equal(part.begin(), part.end(), uniforms.begin() + static_cast<std::ptrdiff_t>(first)));
        random::detail::fill_normal<S>(part, 5, 6, S(1), S(0.5), first);
        CHECK(std::equal(part.begin(), part.end(), normals.begin() + static_cast<std::ptrdiff_t>(first)));
    }
    random::detail::fill_uniform<S>(std::span<S>(), 1, 2);
}

TEST_CASE("random: numbers have the same bits as in earlier versions") {
    // If these values change, every training run changes, and the next release needs a new major version.
    CHECK(random::detail::uniform<float>(1, 2, 3) == 0x1.415fap-5f);
    CHECK(random::detail::uniform<double>(1, 2, 3) == 0x1.c1679e688a83p-5);
    CHECK(random::detail::normal<float>(1, 2, 3) == 0x1.a2551p-2f);
    CHECK(random::detail::normal<double>(1, 2, 3) == 0x1.8292ad3d6a205p-3);
    CHECK(random::detail::below(1, 2, 3, 1000) == 850);
    CHECK(random::detail::permutation(8, 1, 2) == std::vector<std::int32_t>{5, 1, 2, 0, 7, 4, 6, 3});
    std::vector<double> many(100000);
    random::detail::fill_normal<double>(many, 1, 2);
    std::uint64_t hash = 0;
    for (const double x : many) hash = hash * 1099511628211u + std::bit_cast<std::uint64_t>(x);
    CHECK(hash == 0x84d81ae72c54bd8b);  // the same with every compiler, optimisation level and processor
}

TEMPLATE_TEST_CASE("random::uniform: fills 0 to 1 evenly", "", float, double) {
    using S = TestType;
    std::vector<S> drawn(100000);
    random::detail::fill_uniform<S>(drawn, 17, 0);
    CHECK(*std::min_element(drawn.begin(), drawn.end()) >= 0);
    CHECK(*std::max_element(drawn.begin(), drawn.end()) < 1);
    CHECK(ks_distance({drawn.begin(), drawn.end()}, [](double x) { return x; }) < ks_critical);
    constexpr double step = sizeof(S) == 4 ? 0x1p24 : 0x1p53;
    bool odd = false;
    for (const S x : drawn) {
        const double scaled = static_cast<double>(x) * step;
        REQUIRE(scaled == std::floor(scaled));
        odd = odd || std::fmod(scaled, 2) == 1;
    }
    CHECK(odd);  // some numbers have 1 as the last of their 24 or 53 bits
}

TEST_CASE("random::uniform: stays below the upper bound when rounding would reach it") {
    const float lo = 1, hi = std::nextafter(1.0f, 2.0f);
    for (std::uint64_t i = 0; i < 1000; ++i) REQUIRE(random::detail::uniform<float>(3, 0, i, lo, hi) == lo);
}

TEMPLATE_TEST_CASE("random::normal: has a normal distribution", "", float, double) {
    using S = TestType;
    std::vector<S> drawn(200000);
    random::detail::fill_normal<S>(drawn, 17, 1);
    const auto n = static_cast<double>(drawn.size());
    double moment[5] = {};
    for (const S x : drawn) {
        double power = 1;
        for (double& sum : moment) {
            sum += power / n;
            power *= static_cast<double>(x);
        }
    }
    // The bound is four standard errors. The variances of x, x², x³ and x⁴ are 1, 2, 15 and 96.
    CHECK(std::abs(moment[1]) < 4 * std::sqrt(1 / n));
    CHECK(std::abs(moment[2] - 1) < 4 * std::sqrt(2 / n));
    CHECK(std::abs(moment[3]) < 4 * std::sqrt(15 / n));
    CHECK(std::abs(moment[4] - 3) < 4 * std::sqrt(96 / n));
    CHECK(ks_distance({drawn.begin(), drawn.end()}, normal_cumulative) < ks_critical);
    double together = 0;  // both numbers of a pair must be uncorrelated
    for (std::size_t i = 0; i + 1 < drawn.size(); i += 2)
        together += static_cast<double>(drawn[i] * drawn[i + 1]);
    CHECK(std::abs(together / (n / 2)) < 4 / std::sqrt(n / 2));
}

TEST_CASE("random: the own logarithm and circle are accurate to a few units in the last place") {
    constexpr double ulp = std::numeric_limits<double>::epsilon();
    double worst_log = 0, worst_circle = 0;
    for (std::uint64_t i = 0; i < 200000; ++i) {
        const double x = (static_cast<double>(random::detail::below(1, 0, i, std::uint64_t{1} << 52)) + 0.5) *
                         (i % 2 == 0 ? 0x1p-52 : std::ldexp(1.0, -static_cast<int>(i % 1000) - 52));
        const long double log = std::log(static_cast<long double>(x));
        worst_log = std::max(worst_log, static_cast<double>(std::abs((random::detail::log(x) - log) / log)));

        const std::uint64_t turn =
            random::detail::join(random::detail::bits(2, 0, 2 * i), random::detail::bits(2, 0, 2 * i + 1));
        const long double angle =
            static_cast<long double>(turn) * 0x1p-64L * 2 * std::numbers::pi_v<long double>;
        const random::detail::Point point = random::detail::on_circle(turn);
        worst_circle = std::max({worst_circle, static_cast<double>(std::abs(point.x - std::cos(angle))),
                                 static_cast<double>(std::abs(point.y - std::sin(angle)))});
    }
    INFO("log: " << worst_log / ulp << " ulp, circle: " << worst_circle / ulp << " ulp");
    CHECK(worst_log < 2 * ulp);
    CHECK(worst_circle < ulp);
    CHECK(random::detail::log(1.0) == 0);
    CHECK(std::abs(random::detail::log(1 - 0x1p-53) / std::log1p(-0x1p-53) - 1) < 2 * ulp);
    for (std::uint64_t eighth = 0; eighth < 8; ++eighth) {
        const random::detail::Point point = random::detail::on_circle(eighth << 61);
        const double angle = static_cast<double>(eighth) * std::numbers::pi / 4;
        CHECK(std::abs(point.x - std::cos(angle)) < 2 * ulp);
        CHECK(std::abs(point.y - std::sin(angle)) < 2 * ulp);
    }
}

TEST_CASE("random::normal: the extreme values are finite and as documented") {
    CHECK(std::abs(random::detail::normal_pair(0.5 * 0x1p-32, 0).x - 6.7637) < 1e-4);
    CHECK(std::abs(random::detail::normal_pair(0.5 * 0x1p-52, 0).x - 8.5717) < 1e-4);
    CHECK(random::detail::normal_pair(1 - 0x1p-53, 0).x > 0);
}

TEST_CASE("random::below: returns every integer below n equally often, and never n") {
    for (const std::uint64_t n : {2u, 3u, 5u, 6u, 7u, 10u, 16u, 17u}) {
        std::vector<int> hits(n);
        constexpr int draws = 60000;
        for (std::uint64_t i = 0; i < draws; ++i) ++hits.at(random::detail::below(11, n, i, n));
        const double expected = static_cast<double>(draws) / static_cast<double>(n);
        double chi2 = 0;
        for (const int count : hits) chi2 += (count - expected) * (count - expected) / expected;
        const auto freedom = static_cast<double>(n - 1);
        CHECK(chi2 < freedom + 4 * std::sqrt(2 * freedom) + 6);
    }
    STATIC_REQUIRE(random::detail::below(1, 2, 3, 0) == 0);
    STATIC_REQUIRE(random::detail::below(1, 2, 3, 1) == 0);
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t all_bits = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
        all_bits |= random::detail::below(1, 2, i, most);
        const std::uint64_t just_over_half = (most >> 1) + 2;  // nearly half of all draws are rejected
        REQUIRE(random::detail::below(1, 3, i, just_over_half) < just_over_half);
    }
    CHECK(all_bits == most);
}

TEST_CASE("random::permutation: contains every number once, and all orders are equally likely") {
    CHECK(random::detail::permutation(0, 1, 2).empty());
    CHECK(random::detail::permutation(1, 1, 2) == std::vector<std::int32_t>{0});
    std::vector<std::int32_t> large = random::detail::permutation(1000, 1, 2);
    CHECK(large == random::detail::permutation(1000, 1, 2));
    CHECK(large != random::detail::permutation(1000, 1, 3));
    CHECK(large != random::detail::permutation(1000, 2, 2));
    std::sort(large.begin(), large.end());
    for (std::size_t i = 0; i < large.size(); ++i) REQUIRE(large[i] == static_cast<std::int32_t>(i));

    std::array<int, 24> hits{};
    constexpr int draws = 24000;
    for (std::uint64_t stream = 0; stream < draws; ++stream) {
        std::vector<std::int32_t> order = random::detail::permutation(4, 9, stream);
        std::size_t rank = 0;  // the index of this permutation among all 24
        for (std::size_t i = 0; i < 4; ++i) {
            std::size_t smaller = 0;
            for (std::size_t j = i + 1; j < 4; ++j) smaller += order[j] < order[i];
            rank = rank * (4 - i) + smaller;
        }
        ++hits.at(rank);
    }
    double chi2 = 0;
    for (const int count : hits) chi2 += (count - 1000.0) * (count - 1000.0) / 1000.0;
    CHECK(chi2 < 23 + 4 * std::sqrt(46.0));
    CHECK_THROWS_WITH(random::detail::permutation(std::size_t{1} << 31, 1, 2),
                      "[permutation] 2147483648 numbers exceed the limit of 2147483647");
}
