// Tests that an exact sum is rounded only once. The order of the additions changes no bit.
#include "tally/array/exact_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "array/exact_sum_cases.hpp"
#include "catch.hpp"
#include "effort.hpp"
#include "tally/memory/memory.hpp"

using namespace tally;
using namespace tally::test;

namespace {

template <class S> S sum_of(const std::vector<S>& summands) {
    return exact_sum_of(summands).rounded().item();
}

template <class S> bool same_number(S a, S b) { return bits_of(a) == bits_of(b); }

// Merges several sums as MPI_Allreduce would. All sums are first converted to the same range of exponents, so
// that their digits can be added as integers.
template <class S> S added_as_integers(std::vector<detail::ExactSum<S>>& parts) {
    detail::ExactRange all;
    std::int64_t additions = 0;
    for (detail::ExactSum<S>& part : parts) {
        part.carry();
        all = all.united_with(part.range());
    }
    for (detail::ExactSum<S>& part : parts) {
        part.widen(all);
        additions += part.additions();
    }
    for (std::size_t p = 1; p < parts.size(); ++p)
        for (std::size_t k = 0; k < all.words_per_number(); ++k) parts[0].words()[k] += parts[p].words()[k];
    parts[0].set_additions(additions);
    return parts[0].rounded().item();
}

template <class S> void check_every_split(std::uint64_t seed, int cases) {
    for (int i = 0; i < cases; ++i) {
        Random random(seed + static_cast<std::uint64_t>(i));
        std::vector<S> summands = drawn_summands<S>(random);
        INFO("seed " << seed + static_cast<std::uint64_t>(i) << ": " << listed(summands));
        const S want = sum_of(summands);
        for (int again = 0; again < 3; ++again) {
            std::vector<detail::ExactSum<S>> parts, same;
            for (std::int64_t p = random.whole(1, 5); p > 0; --p) {
                parts.emplace_back(Shape{});
                same.emplace_back(Shape{});
            }
            for (std::size_t k = summands.size(); k > 0; --k) {
                const auto which =
                    static_cast<std::size_t>(random.whole(0, static_cast<std::int64_t>(parts.size()) - 1));
                std::swap(
                    summands[k - 1],
                    summands[static_cast<std::size_t>(random.whole(0, static_cast<std::int64_t>(k) - 1))]);
                parts[which].add(Array<S>({}, {summands[k - 1]}));
                same[which].add(Array<S>({}, {summands[k - 1]}));
                if (random.whole(0, 5) == 0) parts[which].carry();
            }
            REQUIRE(same_number(added_as_integers(same), want));
            detail::ExactSum<S> all{Shape{}};
            for (std::size_t p = parts.size(); p > 0; --p) all.merge(parts[p - 1]);
            REQUIRE(same_number(all.rounded().item(), want));
        }
    }
}

}  // namespace

TEST_CASE("Law: an exact sum has the same bits in every order and split") {
    const std::uint64_t seed = std::random_device()();
    WARN("seed " << seed);
    check_every_split<float>(seed, cases_of(1000));
    check_every_split<double>(seed, cases_of(1000));
}

// All summands are multiples of 1/64, so their sum in double has no rounding error.
TEST_CASE("ExactSum: a sum of floats equals the exact sum in double, rounded once") {
    const std::uint64_t seed = std::random_device()();
    WARN("seed " << seed);
    Random random(seed);
    for (int i = 0; i < 300; ++i) {
        const Shape shape = random.shape(3);
        std::vector<double> want(shape.size(), 0.0);
        detail::ExactSum<float> sum(shape);
        for (std::int64_t k = random.whole(1, 60); k > 0; --k) {
            std::vector<float> summand;
            for (double& number : want) {
                const auto x = static_cast<float>(random.whole(-(1 << 23), 1 << 23)) / 64;
                summand.push_back(random.whole(0, 3) ? x : 0);
                number += static_cast<double>(summand.back());
            }
            sum.add(Array<float>(shape, summand));
        }
        const std::vector<float> got = sum.rounded().to_vector();
        for (std::size_t k = 0; k < want.size(); ++k) REQUIRE(got[k] == static_cast<float>(want[k]));
    }
}

TEMPLATE_TEST_CASE("ExactSum: rounds once, to nearest and ties to even", "", float, double) {
    using S = TestType;
    const S eps = std::numeric_limits<S>::epsilon(), least = std::numeric_limits<S>::denorm_min();
    CHECK(sum_of<S>({1, eps / 2}) == 1);                      // a tie is rounded down to the even number
    CHECK(sum_of<S>({1 + eps, eps / 2}) == 1 + 2 * eps);      // a tie is rounded up to the even number
    CHECK(sum_of<S>({1, eps / 2, least}) == 1 + eps);         // slightly more than half is rounded up
    CHECK(sum_of<S>({1 + eps, eps / 2, -least}) == 1 + eps);  // slightly less than half is rounded down
    CHECK(sum_of<S>({-1, -eps / 2, -least}) == -1 - eps);
    CHECK(sum_of<S>({-1 - eps, -eps / 2}) == -1 - 2 * eps);
    CHECK(sum_of<S>({1, eps / 4, eps / 4, eps / 4, eps / 4}) == 1 + eps);  // plain addition loses eps / 4
    CHECK(sum_of<S>({2 - eps, eps / 2}) == 2);                             // carries into the exponent
    CHECK(sum_of<S>({std::ldexp(S(1), 100), 1, -std::ldexp(S(1), 100)}) == 1);
    CHECK(sum_of<S>({std::ldexp(S(1), 100), -1, -std::ldexp(S(1), 100)}) == -1);
}

TEMPLATE_TEST_CASE("ExactSum: results can be denormal, the largest number or infinite", "", float, double) {
    using S = TestType;
    using Limits = std::numeric_limits<S>;
    const S least = Limits::denorm_min(), normal = Limits::min(), most = Limits::max(),
            inf = Limits::infinity();
    CHECK(sum_of<S>({least}) == least);
    CHECK(sum_of<S>({least, least, -least}) == least);
    CHECK(sum_of<S>({normal, -least}) == normal - least);
    CHECK(sum_of<S>({normal - least, least}) == normal);
    CHECK(sum_of<S>({normal, normal, -least}) == 2 * normal - least);
    const S half_step = std::ldexp(most, -Limits::digits - 1);  // slightly less than half of the last place
    CHECK(sum_of<S>({most, half_step}) == most);
    CHECK(sum_of<S>({most, std::ldexp(S(1), Limits::max_exponent - Limits::digits - 1)}) == inf);  // a tie
    CHECK(sum_of<S>({most, most, -most}) == most);  // only a partial sum exceeds the range
    CHECK(sum_of<S>({most, most}) == inf);
    CHECK(sum_of<S>({-most, -most, least}) == -inf);
    CHECK(sum_of<S>({most, most, most, -most, -most, least, -most}) == least);
}

TEMPLATE_TEST_CASE("ExactSum: follows IEEE for infinities, NaN and zeros", "", float, double) {
    using S = TestType;
    const S inf = std::numeric_limits<S>::infinity(), nan = std::numeric_limits<S>::quiet_NaN();
    for (const std::vector<S>& summands : std::vector<std::vector<S>>{
             {inf, -inf}, {-inf, 1, inf}, {nan}, {-nan, 1}, {inf, nan}, {nan, -inf, -0.0}})
        CHECK(same_number(sum_of(summands), nan));
    CHECK(sum_of<S>({1, inf, -5}) == inf);
    CHECK(sum_of<S>({-inf, std::numeric_limits<S>::max(), -inf}) == -inf);
    CHECK(same_number(sum_of<S>({}), S(0)));
    CHECK(same_number(sum_of<S>({-0.0}), S(-0.0)));
    CHECK(same_number(sum_of<S>({-0.0, -0.0, -0.0}), S(-0.0)));
    CHECK(same_number(sum_of<S>({0, -0.0}), S(0)));
    CHECK(same_number(sum_of<S>({-0.0, 0}), S(0)));
    CHECK(same_number(sum_of<S>({-1, 1, -0.0}), S(0)));
    CHECK(same_number(sum_of<S>({-0.0, 1, -1}), S(0)));
    // The sign of a merged zero depends on all zeros that were added to the two sums.
    for (const bool negative_first : {true, false}) {
        detail::ExactSum<S> one{Shape{}}, other{Shape{}}, none{Shape{}};
        one.add(Array<S>({}, {negative_first ? S(-0.0) : S(0)}));
        other.add(Array<S>({}, {negative_first ? S(0) : S(-0.0)}));
        one.merge(none);
        none.merge(one);
        CHECK(same_number(none.rounded().item(), negative_first ? S(-0.0) : S(0)));
        one.merge(other);
        CHECK(same_number(one.rounded().item(), S(0)));
    }
    // An ExactSum has a separate sum for each element of the array.
    detail::ExactSum<S> sum({4});
    sum.add(Array<S>({4}, {1, S(-0.0), inf, 2}));
    sum.add(Array<S>({4}, {2, S(-0.0), -5, nan}));
    const std::vector<S> got = sum.rounded().to_vector();
    CHECK(got[0] == 3);
    CHECK(same_number(got[1], S(-0.0)));
    CHECK(got[2] == inf);
    CHECK(std::isnan(got[3]));
}

// An ExactSum propagates its carries after at most `most_additions` additions.
TEMPLATE_TEST_CASE("ExactSum: carries before its digits overflow", "", float, double) {
    using S = TestType;
    const S most = std::numeric_limits<S>::max();
    const std::int64_t count = 2 * detail::ExactSum<S>::most_additions + 7;
    detail::ExactSum<S> sum({2});
    const S almost_two = 2 - std::numeric_limits<S>::epsilon();
    const Array<S> summand({2}, {almost_two, -most}), minus_one({2}, {S(0), most});
    for (std::int64_t i = 0; i < count; ++i) sum.add(summand);
    const double exact = static_cast<double>(almost_two) * static_cast<double>(count);  // exact if S is float
    CHECK(sum.additions() <= detail::ExactSum<S>::most_additions);
    CHECK(sum.rounded().to_vector()[1] == -std::numeric_limits<S>::infinity());
    for (std::int64_t i = 0; i < count; ++i) sum.add(minus_one);
    const std::vector<S> got = sum.rounded().to_vector();
    CHECK(got[0] == static_cast<S>(exact));
    CHECK(same_number(got[1], S(0)));
}

TEST_CASE("ExactSum: counters of infinities do not overflow when sums with the most additions are merged") {
    detail::ExactSum<float> all({}), more({});
    const auto most = detail::ExactSum<float>::most_additions;
    all.add(Array<float>({}, {std::numeric_limits<float>::infinity()}));
    more.add(Array<float>({}, {std::numeric_limits<float>::infinity()}));
    all.words().back() *= most;
    all.set_additions(most);
    more.words().back() *= 2 * most;
    more.set_additions(2 * most);
    all.merge(more);
    CHECK(all.rounded().item() == std::numeric_limits<float>::infinity());
}

TEST_CASE("ExactSum: zeros can be added when the range has no digit for their place") {
    detail::ExactSum<double> sum({2});
    sum.widen({0, 0, false});
    sum.words()[1] = 1;
    sum.set_additions(1);
    sum.add(Array<double>({2}, {0, -0.0}));
    CHECK(sum.rounded().to_vector() == std::vector<double>{0, std::numeric_limits<double>::denorm_min()});
}

TEST_CASE("ExactSum: doubling 60 times by merging is exact") {
    std::vector<detail::ExactSum<float>> sums;
    sums.emplace_back(Shape{});
    sums.back().add(Array<float>({}, {1.5f}));
    sums.back().add(Array<float>({}, {-0.0f}));
    for (int k = 0; k < 60; ++k) {
        sums.emplace_back(Shape{});
        sums.back().merge(sums[sums.size() - 2]);
        sums.back().merge(sums[sums.size() - 2]);
    }
    CHECK(sums.back().rounded().item() == std::ldexp(1.5f, 60));
    CHECK(sums.back().additions() <= detail::ExactSum<float>::most_additions);
}

TEST_CASE("ExactSum: allocates only the digits that its exponents need") {
    const std::size_t before = memory::in_use(Device::cpu);
    detail::ExactSum<float> sum({1000});
    CHECK(sum.bytes() == 0);
    sum.add(Array<float>::zeros({1000}));
    CHECK(sum.bytes() == 0);
    sum.add(Array<float>::full({1000}, 4.0f));
    CHECK(sum.range().digit_count() == 1);  // 4.0f has bits 128 to 151, which are in digit 4
    sum.add(Array<float>::full({1000}, 0x1p-20f));
    CHECK(sum.range().digit_count() == 2);
    CHECK(sum.bytes() == 1000 * 2 * sizeof(std::int64_t));
    CHECK(memory::in_use(Device::cpu) - before >= sum.bytes());
    const memory::Report report = memory::report(Device::cpu);
    CHECK(report.in_use_by[static_cast<std::size_t>(MemoryClass::gradient)] >= sum.bytes());
    sum.add(Array<float>::full({1000}, 0x1p-149f));
    CHECK(sum.range().digit_count() == 5);
    sum.add(Array<float>::full({1000}, -0.0f));
    CHECK(sum.range().words_per_number() == 6);
    sum.add(Array<float>::full({1000}, 0x1p127f));
    CHECK(sum.range().words_per_number() == 10);
    CHECK(sum.rounded().to_vector()[999] == 0x1p127f);
    sum.clear();
    CHECK(sum.empty());
    CHECK(memory::in_use(Device::cpu) == before);
    detail::ExactSum<double> wide(Shape{});
    wide.add(Array<double>({}, {std::numeric_limits<double>::denorm_min()}));
    wide.add(Array<double>({}, {std::numeric_limits<double>::max()}));
    CHECK(wide.range().digit_count() == 66);
}

TEST_CASE("ExactSum: arrays without elements can be summed") {
    detail::ExactSum<double> sum({0, 3});
    sum.add(Array<double>::zeros({0, 3}));
    sum.carry();
    CHECK(sum.rounded().shape() == Shape{0, 3});
}

TEST_CASE("ExactSum: the sum stays when an addition or a merge throws Error") {
    detail::ExactSum<float> sum({2}), other({3});
    sum.add({1.0f, 2.0f});
    CHECK_THROWS_WITH(sum.add({1.0f, 2.0f, 3.0f}),
                      contains("[exact_sum] (3) cannot be added to a sum of (2)"));
    CHECK_THROWS_WITH(sum.merge(other),
                      contains("[exact_sum] a sum of (3) cannot be merged into one of (2)"));
    CHECK_THROWS_WITH(sum.merge(sum), contains("[exact_sum] a sum cannot be merged into itself"));
    CHECK_THROWS_AS(sum.add(Array<float>()), Error);
    memory::detail::fail_allocation(1);
    CHECK_THROWS_AS(sum.add({1e20f, 0.0f}), OutOfMemory);
    memory::detail::fail_allocation(0);
    CHECK(sum.rounded().to_vector() == std::vector<float>{1, 2});
}
