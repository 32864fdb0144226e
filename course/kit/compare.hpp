// Compares numbers. A Check stores whether the numbers are equal or close, and which element differs most.
#pragma once

#include <string>

#include "course/kit/event.hpp"

namespace tally::lesson {

Check compared_bitwise(std::string name, const Numbers& got, const Numbers& expected, int digits);
Check compared_within(std::string name, const Numbers& got, const Numbers& expected, const Numbers& bound,
                      int digits);

}  // namespace tally::lesson
