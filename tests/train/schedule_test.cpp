// Tests the first and last values of a Schedule, the values after a warm-up, and errors.
// trajectories_test.cpp compares schedules with PyTorch.
#include "tally/train/schedule.hpp"

#include <cmath>

#include "catch.hpp"

namespace tally::test {

TEST_CASE("Schedule: values at the start, the middle and the end are as given") {
    const Schedule cosine = Schedule::cosine(0.5, 100, 0.125);
    CHECK(cosine.at(0) == 0.5);
    CHECK(std::abs(cosine.at(50) - 0.3125) < 1e-15);
    CHECK(cosine.at(100) == 0.125);
    CHECK(Schedule::constant(0.25).at(1000000) == 0.25);
    const Schedule step = Schedule::step(0.5, 10, 0.5);
    CHECK(step.at(9) == 0.5);
    CHECK(step.at(10) == 0.25);
    CHECK(step.at(29) == 0.125);
    const Schedule both = Schedule::warm_up(4, cosine, 0);
    CHECK(both.at(0) == 0);
    CHECK(both.at(2) == 0.25);
    for (std::int64_t update = 4; update < 110; ++update) CHECK(both.at(update) == cosine.at(update - 4));
    CHECK(Schedule::warm_up(4, Schedule::warm_up(4, cosine, 0.5)).at(4) == 0.25);
    CHECK(Schedule([](std::int64_t update) { return 1.0 / static_cast<double>(1 + update); }).at(3) == 0.25);
}

TEST_CASE("Schedule: invalid arguments throw an Error") {
    CHECK_THROWS_WITH(Schedule::constant(-1), "[constant] a rate must be finite and at least 0; -1 is not");
    CHECK_THROWS_WITH(Schedule::step(0.1, 0), contains("[step] the number of updates must be at least 1"));
    CHECK_THROWS_WITH(Schedule::step(0.1, 5, -1), contains("[step] the factor"));
    CHECK_THROWS_WITH(Schedule::cosine(0.1, -3), contains("[cosine] the number of updates"));
    CHECK_THROWS_WITH(Schedule::cosine(0.1, 3, -1), contains("[cosine] a rate"));
    CHECK_THROWS_WITH(Schedule::warm_up(0, Schedule::constant(1)), contains("[warm_up]"));
    CHECK_THROWS_WITH(Schedule::warm_up(3, Schedule::constant(1), 2),
                      contains("[warm_up] the factor of the first rate"));
    CHECK_THROWS_WITH(Schedule::constant(1).at(-1), contains("the update must be at least 0; -1 is not"));
}

}  // namespace tally::test
