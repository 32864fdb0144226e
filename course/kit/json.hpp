// From an event to one line of JSON: numbers in full precision under "values", as printed under "text".
#pragma once

#include <string>

#include "course/kit/event.hpp"

namespace tally::lesson {

std::string json_line(const Event& event, const Lesson& lesson, int digits);

// What --describe prints: {"v":1,"lesson":7,"slug":"divide","event":"lesson",...}. A status is added when it
// is not empty.
std::string description(const Lesson& lesson, const std::string& status = {});

// The other way, for the runner; a line that is something else is a std::exception.
Lesson parse_description(const std::string& line);
End parse_end(const std::string& line);

}  // namespace tally::lesson
