// A test program whose device is never there: how a main says so is asked by main_test.py.
#include "catch.hpp"

namespace tally::test {

namespace {

[[maybe_unused]] const bool told = (
    why_not = [] { return std::string("no such device"); }, true);

}  // namespace

TEST_CASE("What needs the device") { FAIL("it ran without"); }

}  // namespace tally::test
