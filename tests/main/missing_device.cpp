// The device of this test program is always missing. main_test.py checks that the tests are skipped.
#include "catch.hpp"

namespace tally::test {

namespace {

[[maybe_unused]] const bool is_set = (
    why_not = [] { return std::string("no such device"); }, true);

}  // namespace

TEST_CASE("a case that needs the device") { FAIL("it ran without"); }

}  // namespace tally::test
