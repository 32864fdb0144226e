// What a lesson is written with. Its source is compiled once for each scalar type, called `real` in it; both objects
// are linked into one program, whose --dtype chooses.
//
//     namespace {  // each object has its own of everything that a lesson defines
//     struct Divide {
//         void talk() { step("..."); ... }
//     };
//     const Given<Divide> lesson({.number = 7, .slug = "divide", ...});
//     }  // namespace
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "course/kit/lesson.hpp"
#include "course/kit/wording.hpp"
#include "tally/tally.hpp"
#include "tally/tools/sheet.hpp"

#ifndef TALLY_REAL
#define TALLY_REAL float  // for an editor, which looks at a lesson by itself
#endif

namespace tally::lesson {

// The numbers of whatever can be shown, for a witness who computes in double.
inline std::vector<double> values(const Numbers& numbers) { return numbers.values; }

void give(const Lesson& lesson, bool in_double, void (*talk)());  // before main()
// What main() is in a lesson's program: runs the one that was given, or, of several, the one with this number.
int run_given(int argc, const char* const* argv, int number = 0);

// A picture of what `draw` records: it is given the Picture, and calls name() and backward() of it.
template <std::invocable<Picture&> Draw>
void graph(std::string_view name, std::string title, const Draw& draw) {
    KeepValues keep_values;
    Picture picture(std::move(title));
    draw(picture.widest(drawing::Sheet::widest));
    graph(name, picture.svg(), picture.dot());
}

// A picture that is no graph: it has no DOT.
template <class What>
requires requires(const std::string& title, const What& what) { sheet_of(title, what); }
void graph(std::string_view name, const std::string& title, const What& what) {
    graph(name, sheet_of(title, what).svg(), "");
}

}  // namespace tally::lesson

namespace {
using real = TALLY_REAL;
using Scalar = tally::Var<real>;
using Tensor = tally::Var<tally::Array<real>>;

template <class Talk> struct Given {
    explicit Given(const tally::lesson::Lesson& lesson) {
        tally::lesson::give(lesson, std::is_same_v<real, double>, [] { Talk().talk(); });
    }
};

// The bound of n roundings in a row, relative to the sum of the magnitudes.
constexpr double roundings(int n) { return tally::lesson::gamma_bound<real>(n); }
}  // namespace
