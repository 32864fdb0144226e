// Tests exact comparisons, comparisons within a bound, and operands that cannot be compared.
#include "course/kit/compare.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"

using namespace tally::lesson;
using tally::test::contains;

namespace {
const double inf = std::numeric_limits<double>::infinity();
Check equal(const Numbers& got, const Numbers& expected) { return compared("x", got, expected, nullptr, 4); }
Check within(const Numbers& got, const Numbers& expected, const Numbers& bound) {
    return compared("x", got, expected, &bound, 4);
}
Numbers vec(std::vector<double> values) { return Numbers(values); }
}  // namespace

TEST_CASE("compared without a bound: equal numbers have the same bits") {
    CHECK(equal(vec({1, 2}), vec({1, 2})).ok);
    CHECK_FALSE(equal(1.0, std::nextafter(1.0, 2.0)).ok);
    CHECK_FALSE(equal(0.0, -0.0).ok);
    CHECK(equal(std::nan(""), std::nan("")).ok);
    CHECK(equal(0.5F, 0.5).ok);
    CHECK_FALSE(equal(0.1F, 0.1).ok);
}

TEST_CASE("compared without a bound: a failure reports the operands and the largest difference") {
    const Check check = equal(vec({1, 2, 3}), vec({1, 2.5, 3.1}));
    CHECK_FALSE(check.ok);
    CHECK(check.max_diff == 0.5);
    CHECK_THAT(check.detail, contains("got  1.0000  2.0000  3.0000, expected  1.0000  2.5000  3.1000"));
    CHECK_THAT(check.detail, contains("at (1): got 2, expected 2.5"));
    CHECK_THAT(equal(0.1F, 0.2F).detail, contains("got 0.1, expected 0.2"));
}

TEST_CASE("compared within a bound: a difference equal to the bound is close") {
    const Check check = within(vec({1, 2}), vec({1, 2.25}), 0.25);
    CHECK(check.ok);
    CHECK(check.exact == false);
    CHECK(check.close == true);
    CHECK(check.max_diff == 0.25);
    CHECK(check.bound == 0.25);
    CHECK_FALSE(within(vec({1, 2}), vec({1, 2.25}), 0.249).ok);
    CHECK(within(1.0, 1.0, 0.0).exact == true);
}

TEST_CASE("compared within a bound: each element may have its own bound") {
    CHECK(within(vec({1, 2}), vec({1.5, 2.1}), vec({0.5, 0.2})).ok);
    const Check check = within(vec({1, 2}), vec({1.5, 2.1}), vec({0.6, 0.05}));
    CHECK_FALSE(check.ok);
    CHECK_THAT(check.detail,
               contains("at (1)"));  // not the element that differs most, but the one beyond its bound
    CHECK_FALSE(within(vec({1, 2}), vec({1, 2}), vec({1, 2, 3})).ok);
}

TEST_CASE("compared within a bound: NaN is never close, and equal infinities are") {
    CHECK_FALSE(within(std::nan(""), 1.0, inf).ok);
    CHECK_FALSE(within(1.0, std::nan(""), 1.0).ok);
    CHECK_FALSE(within(1.0, 1.0, std::nan("")).ok);
    CHECK_FALSE(within(vec({std::nan(""), 1}), vec({1, 1}), 1.0).ok);
    CHECK(within(inf, inf, 0.0).ok);
    CHECK_FALSE(within(inf, -inf, 1.0).ok);
}

TEST_CASE("compared without a bound: fails with a message when the numbers cannot be compared") {
    CHECK_THAT(equal(vec({1, 2}), vec({1, 2, 3})).detail, contains("shapes differ: got (2), expected (3)"));
    CHECK_FALSE(equal(vec({1}), 1.0).ok);
    CHECK_THAT(within(vec({}), vec({}), 1.0).detail, contains("nothing was compared"));
    CHECK_THAT(equal(Numbers::not_there(), 0.0).detail, contains("no gradient"));
}
