// ./learn dev-check: whether each exercise is what it promises to be.
#pragma once

#include <cstdint>
#include <vector>

#include "course/kit/runner/exercises.hpp"

namespace tally::lesson {

// Each beginning fails in words, each answer passes, each known mistake is recognised as itself, hints and sentences give
// nothing away. Says what was found; several at once.
bool check_the_exercises(const Exercises& exercises, const std::vector<const Exercise*>& chosen,
                         std::uint64_t seed);

}  // namespace tally::lesson
