// One include for Catch2 v2 and v3: assertions, sections, generators, matchers; and TALLY_SKIP.
#pragma once

#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#else
#include <catch2/catch.hpp>
#endif

namespace tally::test {

// The matcher for REQUIRE_THROWS_WITH and REQUIRE_THAT, whose name differs between v2 and v3.
inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_test_macros.hpp>)
    return Catch::Matchers::ContainsSubstring(part);
#else
    return Catch::Matchers::Contains(part);
#endif
}

extern void (*before_each_test)();  // set by a program that has something to bring in order
extern std::string (*why_not)();    // set by a program that needs what may not be there; empty: it is there

inline int skipped_tests = 0;  // read by the main: where nothing else ran, ctest reports "Skipped"

}  // namespace tally::test

// Leaves the test case and says why; the process exits with 4 when every test case it ran was skipped.
#define TALLY_SKIP(reason)             \
    do {                               \
        WARN("skipped: " << (reason)); \
        ++tally::test::skipped_tests;  \
        return;                        \
    } while (false)
