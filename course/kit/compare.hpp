// Compares numbers. A Check stores whether the numbers are equal or close, and which element differs most.
#pragma once

#include <string>

#include "course/kit/event.hpp"

namespace tally::lesson {

// Without a bound, all bits must be equal. A bound is one number, or one number for each element.
Check compared(std::string name, const Numbers& got, const Numbers& expected, const Numbers* bound,
               int digits);

}  // namespace tally::lesson
