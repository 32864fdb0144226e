// The pictures of lessons that are not computation graphs. sheet_of() draws them as SVG.
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

// Rows in one batch and in micro-batches: the weight of a row in each mean, and the sums of the gradients.
struct Shares {
    struct Part {
        std::string name;  // "rows 0-1"
        std::size_t rows;
        Vector gradient;  // of the mean over the part
    };
    std::vector<Vector> rows;
    Vector full;
    std::vector<Part> parts;  // empty: only the full batch
    Vector sum;               // of the parts' gradients, without a division; an empty sum is not drawn
    Vector divided = {};      // of the parts' gradients divided by the number of parts
    Vector weighed = {};      // of the parts' gradients weighted by their share of the rows
};
Sheet sheet_of(const std::string& title, const Shares& shares);

// Points in the plane with one scale for both axes, and circles around a middle point.
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

// Neighbouring floating-point numbers, and the places of marks between them.
struct NumberLine {
    struct Number {
        double at;  // in distances between neighbours
        std::string label;
    };
    std::vector<Number> exist, marks;
};
Sheet sheet_of(const std::string& title, const NumberLine& line);

// Returns "1.010..0 x 2^-6" for a positive number.
template <std::floating_point S> std::string bits_of(S number) {
    const int exponent = std::ilogb(number);
    std::string text;
    for (S rest = std::scalbn(number, -exponent); text.size() < std::numeric_limits<S>::digits; rest *= 2) {
        text += rest >= 1 ? '1' : '0';
        if (rest >= 1) rest -= 1;
    }
    return text.insert(1, ".") + " x 2^" + std::to_string(exponent);
}

// The numbers around 1 / (n b), with marks for it, for its rounded value, and for `twice`, rounded (1/n) / b.
template <std::floating_point S> NumberLine around(int n, int b, S twice) {
    const S once = S(1) / S(n * b), spacing = std::nextafter(once, S(1)) - once;
    const auto place = [&](S number) { return double(number - once) / double(spacing); };
    NumberLine line;
    for (S at = std::nextafter(std::min(once, twice), S(0)); line.exist.size() < 4;
         at = std::nextafter(at, S(1)))
        line.exist.push_back({place(at), bits_of(at)});
    // fma computes 1 - n b `once` with a single rounding, which is exact here.
    const double left = double(std::fma(-S(n * b), once, S(1))) / (n * b) / double(spacing);
    const std::string exact = "1/" + std::to_string(n * b), first = "1/" + std::to_string(n);
    line.marks = {
        {left, exact},
        {0, exact + " rounded once"},
        {place(twice), first + " rounded, then divided by " + std::to_string(b) + " and rounded again"}};
    return line;
}

// Stations that a gradient passes, and the places where scissors may cut.
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

// Positive numbers over 0, 1, 2, ... with a logarithmic scale.
struct Curves {
    struct Curve {
        std::string label;
        Vector heights;
    };
    std::string across, up;
    std::vector<Curve> curves;  // at most four
};
Sheet sheet_of(const std::string& title, const Curves& curves);

// Square tables of comparisons. Cells of pairs that are not compared are blank.
struct Matrices {
    struct One {
        std::string name, below;
        std::size_t in_blocks_of;
        std::vector<Vector> rows;  // only the blocks on the diagonal are read
    };
    std::vector<One> all;
};
Sheet sheet_of(const std::string& title, const Matrices& matrices);

// Walks along one axis: the beginning and the end of each step, one step per line.
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

// The step of a chain that begins at each time, and the time for which the input of a step is kept for a
// restart: from the end of the previous step to the last restart from this input.
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

// The work of several workers over time, one lane for each worker. White space is waiting time.
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
