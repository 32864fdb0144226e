// Defines the data of the lessons' pictures, except for computation graphs.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
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

// Shows points in the plane and circles around a middle point. Both axes have the same scale.
struct Plane {
    struct Points {
        std::string label;
        Vector x, y;
    };
    struct Circle {
        std::string label;
        double radius;
    };
    std::string across, up;
    std::vector<Points> points;  // at most two: crosses and squares
    std::string middle_label;
    double middle_x, middle_y;
    std::vector<Circle> circles;
};
Sheet sheet_of(const std::string& title, const Plane& plane);

// Shows neighbouring floating-point numbers on a line, with marks between the numbers.
struct NumberLine {
    struct Number {
        double at;  // position, in distances between neighbours
        std::string label;
    };
    std::vector<Number> exist, marks;
};
Sheet sheet_of(const std::string& title, const NumberLine& line);

// Returns the bits of a positive number in the form "1.010..0 x 2^-6".
template <std::floating_point S> std::string bits_of(S number) {
    const int exponent = std::ilogb(number);
    std::string text;
    for (S rest = std::scalbn(number, -exponent); text.size() < std::numeric_limits<S>::digits; rest *= 2) {
        text += rest >= 1 ? '1' : '0';
        if (rest >= 1) rest -= 1;
    }
    return text.insert(1, ".") + " x 2^" + std::to_string(exponent);
}

// Shows the numbers around 1 / (n b). Marks show 1 / (n b), its rounded value and the twice rounded `twice`.
template <std::floating_point S> NumberLine around(int n, int b, S twice) {
    const S once = S(1) / S(n * b), spacing = std::nextafter(once, S(1)) - once;
    const auto place = [&](S number) { return double(number - once) / double(spacing); };
    NumberLine line;
    for (S at = std::nextafter(std::min(once, twice), S(0)); line.exist.size() < 4;
         at = std::nextafter(at, S(1)))
        line.exist.push_back({place(at), bits_of(at)});
    // fma computes 1 - (n b) * once with a single rounding. The result of this call of fma is exact.
    const double left = double(std::fma(-S(n * b), once, S(1))) / (n * b) / double(spacing);
    const std::string exact = "1/" + std::to_string(n * b), first = "1/" + std::to_string(n);
    line.marks = {
        {left, exact},
        {0, exact + " rounded once"},
        {place(twice), first + " rounded, then divided by " + std::to_string(b) + " and rounded again"}};
    return line;
}

// Shows the steps through which a gradient flows, with cuts between the steps.
struct Scissors {
    struct Cut {
        std::size_t after;  // the index of the station before the cut
        std::string words, gives;
        bool right = false;
    };
    std::vector<std::string> stations;
    std::vector<Cut> cuts;
};
Sheet sheet_of(const std::string& title, const Scissors& scissors);

// Shows curves through positive numbers. The vertical scale is logarithmic.
struct Curves {
    struct Curve {
        std::string label;
        Vector heights;
    };
    std::string across, up;
    std::vector<Curve> curves;  // at most four
};
Sheet sheet_of(const std::string& title, const Curves& curves);

// Shows in square tables which pairs of items are compared. Cells of pairs that are not compared are blank.
struct Matrices {
    struct One {
        std::string name, below;
        std::size_t in_blocks_of;
        std::vector<Vector> rows;  // only the blocks on the diagonal are read
    };
    std::vector<One> all;
};
Sheet sheet_of(const std::string& title, const Matrices& matrices);

// Shows sequences of steps along one axis. Each line shows where one step begins and where the step ends.
struct Walks {
    struct Step {
        std::string label;
        double from, to;
    };
    struct Walk {
        std::string name, end;
        std::vector<Step> steps;
    };
    std::string axis;
    std::vector<Walk> walks;
};
Sheet sheet_of(const std::string& title, const Walks& walks);

// Shows when each step of a model begins, and how long the input of the step stays in memory. The input is
// kept from the end of the previous step to the last restart from this input.
struct Runs {
    std::vector<std::size_t> begun;
    std::vector<bool> recorded;

    struct Kept {
        std::size_t input, from, until;  // the step whose input is kept, and two times
    };
    std::vector<Kept> kept() const;
    std::size_t kept_at_most() const;
};
Sheet sheet_of(const std::string& title, const Runs& runs);

// Shows the work of several workers over time. Each worker has a lane, and gaps in the lane are waiting time.
struct Lanes {
    struct Work {
        std::size_t kind;  // index into `kinds`
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
