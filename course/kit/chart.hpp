// Small charts made of characters.
#pragma once

#include <string>
#include <vector>

#include "course/kit/event.hpp"

namespace tally::lesson {

// At most `width` columns; at most nine lines.
std::vector<std::string> chart_lines(const Plot& plot, std::size_t width, bool ascii);

}  // namespace tally::lesson
