// Declares sweeps, which measure how time or memory grows, and from which size LibTorch is as fast as tally.
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
    std::optional<std::string> catches_up = {};  // whether and where LibTorch becomes as fast as tally
    bool as_table = false;                       // print a table below the picture
};

struct PlannedSweep {
    std::string name;
    std::function<Sweep(const Effort&)> measure;
};
std::vector<PlannedSweep> sweeps();

// Draws the sweep as an SVG file with two logarithmic axes.
std::string to_svg(const Sweep& sweep);

}  // namespace tally::bench
