// How times and memory grow with the work, and the size at which LibTorch catches up.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/table/row.hpp"

namespace tally::bench {

struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;
};

struct Sweep {
    std::string name, title, x, y;
    std::vector<Line> lines;
    std::optional<std::string> catches_up = {};  // whether LibTorch comes to take no longer than tally
    bool as_table = false;                       // in the report, below the picture
};

struct PlannedSweep {
    std::string name;
    std::function<Sweep(const Effort&)> measure;
};
std::vector<PlannedSweep> sweeps();

// A picture that stands alone; both axes are logarithmic.
std::string to_svg(const Sweep& sweep);

}  // namespace tally::bench
