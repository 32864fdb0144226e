// Converts an event to one line of JSON, with exact numbers under "values" and printed ones under "text".
#pragma once

#include <string>

#include "course/kit/event.hpp"

namespace tally::lesson {

std::string json_line(const Event& event, const Lesson& lesson, int digits);

// Returns the line that --describe prints: {"v":1,"lesson":7,"slug":"divide","event":"lesson",...}.
std::string description(const Lesson& lesson, const std::string& status = {});

// The inverse functions, for the runner. They throw a std::exception for any other line.
Lesson parse_description(const std::string& line);
End parse_end(const std::string& line);

}  // namespace tally::lesson
