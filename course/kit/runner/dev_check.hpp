// ./learn dev-check checks the exercises themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "course/kit/runner/exercises.hpp"

namespace tally::lesson {

// Checks in parallel that starting files fail with a known message, that answers pass, and that known
// mistakes are recognised. Hints and messages must not contain a line of an answer. Prints the faults.
bool check_the_exercises(const Exercises& exercises, const std::vector<const Exercise*>& chosen,
                         std::uint64_t seed);

}  // namespace tally::lesson
