// The pictures of lessons that are no computation graphs: what they show is handed in as numbers, and comes back as
// SVG of at most drawing::Sheet::widest.
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

// Rows in one batch and in micro-batches: what a row counts in each mean, and what the sums come to.
struct Shares {
    struct Part {
        std::string name;  // "rows 0-1"
        std::size_t rows;
        Vector gradient;  // of its mean
    };
    std::vector<Vector> rows;
    Vector full;
    std::vector<Part> parts;  // none: the full batch alone
    Vector sum;               // of the parts, nothing divided; empty leaves a sum out
    Vector divided = {};      // of the parts divided by their number
    Vector weighed = {};      // of the parts by their share of the rows
};
Sheet sheet_of(const std::string& title, const Shares& shares);

// Points in the plane, with one scale for both axes, around a middle with circles around it.
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
    std::vector<Points> points;  // at most two kinds: crosses, then squares
    std::string middle_label;
    double middle_x, middle_y;
    std::vector<Circle> circles;
};
Sheet sheet_of(const std::string& title, const Plane& plane);

// Numbers that exist, one spacing apart, and where something lies between them.
struct NumberLine {
    struct Number {
        double at;  // in spacings
        std::string label;
    };
    std::vector<Number> exist, marks;
};
Sheet sheet_of(const std::string& title, const NumberLine& line);

// "1.010..0 x 2^-6", of a positive number
template <std::floating_point S> std::string bits_of(S number) {
    const int exponent = std::ilogb(number);
    std::string text;
    for (S rest = std::scalbn(number, -exponent); text.size() < std::numeric_limits<S>::digits; rest *= 2) {
        text += rest >= 1 ? '1' : '0';
        if (rest >= 1) rest -= 1;
    }
    return text.insert(1, ".") + " x 2^" + std::to_string(exponent);
}

// The numbers around 1 / (n b), where it lies, and what it is rounded once, and by 1/n first and then / b: `twice`.
template <std::floating_point S> NumberLine around(int n, int b, S twice) {
    const S once = S(1) / S(n * b), spacing = std::nextafter(once, S(1)) - once;
    const auto place = [&](S number) { return double(number - once) / double(spacing); };
    NumberLine line;
    for (S at = std::nextafter(std::min(once, twice), S(0)); line.exist.size() < 4;
         at = std::nextafter(at, S(1)))
        line.exist.push_back({place(at), bits_of(at)});
    // What is left of 1 after n b times `once` is exact in one rounding.
    const double left = double(std::fma(-S(n * b), once, S(1))) / (n * b) / double(spacing);
    const std::string exact = "1/" + std::to_string(n * b), first = "1/" + std::to_string(n);
    line.marks = {
        {left, exact},
        {0, exact + " rounded once"},
        {place(twice), first + " rounded, then divided by " + std::to_string(b) + " and rounded again"}};
    return line;
}

// Stations that a gradient passes, and the places where scissors may be put.
struct Scissors {
    struct Cut {
        std::size_t after;  // this station
        std::string words, gives;
        bool right = false;
    };
    std::vector<std::string> stations;
    std::vector<Cut> cuts;
};
Sheet sheet_of(const std::string& title, const Scissors& scissors);

// Positive numbers over 0, 1, 2, ..., upwards by powers of ten.
struct Curves {
    struct Curve {
        std::string label;
        Vector heights;
    };
    std::string across, up;
    std::vector<Curve> curves;  // at most four
};
Sheet sheet_of(const std::string& title, const Curves& curves);

// Who is compared with whom: square tables, in which what is not compared is left blank.
struct Matrices {
    struct One {
        std::string name, below;
        std::size_t in_blocks_of;
        std::vector<Vector> rows;  // blocks beside the diagonal are not looked at
    };
    std::vector<One> all;
};
Sheet sheet_of(const std::string& title, const Matrices& matrices);

// Walks along one axis, step below step: where each begins, and where it ends.
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

// Which step of a chain is begun at which time, and from when until when the input of a step is kept for a restart:
// from the end of the step before it to the last time that the chain is begun from it.
struct Runs {
    std::vector<std::size_t> begun;
    std::vector<bool> recorded;

    struct Kept {
        std::size_t input, from, until;  // of this step; times
    };
    std::vector<Kept> kept() const;
    std::size_t kept_at_most() const;
};
Sheet sheet_of(const std::string& title, const Runs& runs);

// Who works on what when: a lane for each, time to the right. What is left white, they wait.
struct Lanes {
    struct Work {
        std::size_t kind;  // of `kinds`
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
