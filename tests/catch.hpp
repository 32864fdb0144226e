// Includes Catch2 v2 or v3 with assertions, sections, generators and matchers, and defines TALLY_SKIP.
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

// Returns a matcher for strings that contain `part`. The name of this matcher differs in Catch2 v2 and v3.
inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_test_macros.hpp>)
    return Catch::Matchers::ContainsSubstring(part);
#else
    return Catch::Matchers::Contains(part);
#endif
}

extern void (*before_each_test)();  // set by programs that must reset some state
extern std::string (*after_each_test)(const std::string& name,
                                      const std::string& tags);  // returns a complaint, or ""
extern std::string (*why_not)();  // set by programs that need a device; returns why none is found, or ""

inline int skipped_tests = 0;  // if all cases were skipped, main() makes ctest report "Skipped"

}  // namespace tally::test

// Prints the reason, and ends the test case. The exit status is 4 if all test cases are skipped.
#define TALLY_SKIP(reason)             \
    do {                               \
        WARN("skipped: " << (reason)); \
        ++tally::test::skipped_tests;  \
        return;                        \
    } while (false)
