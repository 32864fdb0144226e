// Compares exact sums with the correctly rounded sums of the library MPFR, if libmpfr is installed.
#include <string>
#include <vector>

#include "array/exact_sum_cases.hpp"
#include "catch.hpp"
#include "effort.hpp"

#if TALLY_MPFR
#include <mpfr.h>
#endif

using namespace tally;
using namespace tally::test;

#if TALLY_MPFR

namespace {

// Returns the result of mpfr_sum() with the exponent range and denormals of the type S.
template <class S> S summed_by_mpfr(const std::vector<S>& summands) {
    using Limits = std::numeric_limits<S>;
    const mpfr_exp_t least = mpfr_get_emin(), most = mpfr_get_emax();
    std::vector<mpfr_t> numbers(summands.size());
    std::vector<mpfr_ptr> places;
    for (std::size_t i = 0; i < summands.size(); ++i) {
        mpfr_init2(numbers[i], Limits::digits);
        mpfr_set_d(numbers[i], static_cast<double>(summands[i]), MPFR_RNDN);
        places.push_back(numbers[i]);
    }
    mpfr_t sum;
    mpfr_init2(sum, Limits::digits);
    mpfr_set_emin(Limits::min_exponent - Limits::digits + 1);
    mpfr_set_emax(Limits::max_exponent);
    const int rounded = mpfr_sum(sum, places.data(), places.size(), MPFR_RNDN);
    mpfr_subnormalize(sum, rounded, MPFR_RNDN);
    const auto result = static_cast<S>(mpfr_get_d(sum, MPFR_RNDN));
    mpfr_set_emin(least);
    mpfr_set_emax(most);
    mpfr_clear(sum);
    for (auto& number : numbers) mpfr_clear(number);
    return result;
}

// Compares many random sums with MPFR. Many of the sums must be NaN, infinite, denormal or zero.
template <class S> void compare_with_mpfr(std::uint64_t seed, int cases) {
    Random random(seed);
    int nan = 0, infinite = 0, denormal = 0, zero = 0;
    for (int i = 0; i < cases; ++i) {
        const std::vector<S> summands = drawn_summands<S>(random);
        const S want = summed_by_mpfr(summands), got = exact_sum_of(summands).rounded().item();
        nan += std::isnan(want);
        infinite += std::isinf(want);
        denormal += std::fpclassify(want) == FP_SUBNORMAL;
        zero += want == 0;
        if (std::isnan(want) ? bits_of(got) == bits_of(std::numeric_limits<S>::quiet_NaN())
                             : bits_of(got) == bits_of(want))
            continue;
        INFO("seed " << seed << ", sum " << i << " of " << listed(summands));
        REQUIRE(listed<S>({got}) == listed<S>({want}));
    }
    CHECK(std::min({nan, infinite, denormal, zero}) > cases / 200);
}

}  // namespace

TEST_CASE("ExactSum: has the bits of MPFR's correctly rounded sum", "[alone]") {
    const std::uint64_t seed = std::random_device()();
    WARN("seed " << seed << ", MPFR " << mpfr_get_version());
    compare_with_mpfr<float>(seed, cases_of(60000));
    compare_with_mpfr<double>(seed, cases_of(30000));
}

#else

TEST_CASE("ExactSum: has the bits of MPFR's correctly rounded sum", "[alone]") {
    TALLY_SKIP("libmpfr was not there when this was configured (on Debian: libmpfr-dev)");
}

#endif
