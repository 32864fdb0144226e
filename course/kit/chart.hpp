// Draws small charts with characters.
#pragma once

#include <string>
#include <vector>

#include "course/kit/event.hpp"

namespace tally::lesson {

// Returns at most eight lines of at most `width` columns, followed by the lines of the legend.
std::vector<std::string> chart_lines(const Plot& plot, std::size_t width, bool ascii);

}  // namespace tally::lesson
