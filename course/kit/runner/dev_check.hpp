// ./learn dev-check checks the exercises themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "course/kit/runner/exercises.hpp"

namespace tally::lesson {

// Checks that each starting file fails with a known message, each answer passes, each known mistake is
// recognised, and hints and messages do not contain lines of the answer. Prints the faults. Checks several
// exercises in parallel.
bool check_the_exercises(const Exercises& exercises, const std::vector<const Exercise*>& chosen,
                         std::uint64_t seed);

}  // namespace tally::lesson
