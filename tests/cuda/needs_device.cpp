// These tests want a GPU; where there is none they are skipped, with the reason.
#include "catch.hpp"
#include "tally/device/backend.hpp"

[[maybe_unused]] static const bool told = [] {
    tally::test::why_not = [] { return tally::peer::unavailable_reason(); };
    tally::test::before_each_test = [] { tally::peer::wait_after_each_launch(false); };
    return true;
}();
