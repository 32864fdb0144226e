// The tests of this program need a GPU. Without a GPU, the tests are skipped and print the reason.
#include "catch.hpp"
#include "tally/device/backend.hpp"

[[maybe_unused]] static const bool is_set = [] {
    tally::test::why_not = [] { return tally::backend::unavailable_reason(); };
    tally::test::before_each_test = [] { tally::backend::wait_after_each_launch(false); };
    return true;
}();
