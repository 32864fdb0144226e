// Converts an event to one line of JSON. "values" has the exact numbers, and "text" the printed numbers.
#pragma once

#include <string>

#include "course/kit/event.hpp"

namespace tally::lesson {

std::string json_line(const Event& event, const Lesson& lesson, int digits);

// Returns the line that --describe prints: {"v":1,"lesson":7,"slug":"divide","event":"lesson",...}.
std::string description(const Lesson& lesson, const std::string& status = {});

// Both functions throw a std::exception if the line is invalid.
Lesson parse_description(const std::string& line);
End parse_end(const std::string& line);

}  // namespace tally::lesson
