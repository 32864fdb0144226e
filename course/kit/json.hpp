// Converts an event to one line of JSON. "values" has the exact numbers, and "text" the printed numbers.
#pragma once

#include <string>

#include "course/kit/event.hpp"

namespace tally::lesson {

std::string json_line(const Event& event, const Lesson& lesson, int digits);

// Returns the line that --describe prints: {"v":1,"lesson":7,"slug":"divide","event":"lesson",...}.
std::string description(const Lesson& lesson);

}  // namespace tally::lesson
