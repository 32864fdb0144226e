// Defines the data of the lessons' pictures, except for computation graphs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tally/tools/sheet.hpp"

namespace tally::lesson {

using drawing::Sheet;
using Vector = std::vector<double>;

// Compares the weights of rows and the sums of gradients between a full batch and micro-batches.
struct Shares {
    struct Part {
        std::string name;  // "rows 0-1"
        std::size_t rows;
        Vector gradient;  // gradient of the mean over the part
    };
    std::vector<Vector> rows;
    Vector full;
    std::vector<Part> parts;  // empty: only the full batch
    Vector sum;               // sum of the parts' gradients; an empty sum is not drawn
    Vector divided = {};      // sum of the parts' gradients, divided by the number of parts
    Vector weighed = {};      // sum of the parts' gradients, each weighted by its part's share of the rows
};
Sheet sheet_of(const std::string& title, const Shares& shares);

// Shows points or curves, and circles around a middle point.
struct Plane {
    // With `equal`, both axes have the same scale. A logarithmic height shows only positive numbers.
    enum class Scale { equal, linear, logarithmic };
    struct Series {
        std::string label;
        Vector x, y;
    };
    std::string across, up;
    std::vector<Series> series;  // at most two series of points, or at most four curves
    Scale scale = Scale::equal;  // other scales join the points of a series by a curve
    std::string middle_label = {};
    double middle_x = 0, middle_y = 0;
    std::vector<std::pair<std::string, double>> circles = {};  // labels and radii
};
Sheet sheet_of(const std::string& title, const Plane& plane);

// Returns curves through heights at 0, 1, 2 and so on.
Plane curves(const std::string& across, const std::string& up,
             const std::vector<std::pair<std::string, Vector>>& all,
             Plane::Scale scale = Plane::Scale::linear);

// Shows the work of several workers over time. Each worker has a lane, and gaps in the lane are waiting time.
struct Lanes {
    struct Work {
        std::size_t kind;  // index into `kinds`; a later kind covers earlier kinds
        double from, until;
        std::string label;
    };
    struct Lane {
        std::string name, end;
        std::vector<Work> work;
    };
    std::vector<std::string> kinds;  // at most three
    std::vector<Lane> lanes;
};
Sheet sheet_of(const std::string& title, const Lanes& lanes);

}  // namespace tally::lesson
