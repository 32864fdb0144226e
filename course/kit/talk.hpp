// Lessons include this header, and begin with LESSON(parameters) { ... }.
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

namespace tally::lesson {

using tally::detail::Diagram, tally::detail::format_bytes, tally::detail::short_number, tally::detail::waits;

inline std::vector<double> values(const Numbers& numbers) { return numbers.values; }

// Before main(), registers the lesson of the source file lessons/NN_slug.cpp. Its page, lessons/NN_slug.md, has its title, its
// minutes and its questions. The calls of step() and ask() in the source are its steps.
bool register_source(const char* source, const char* device, const std::vector<LessonParameter>& parameters,
                     void (*talk)());
// Implements main() of a lesson's program.
int run_registered(int argc, const char* const* argv);

inline void graph(std::string_view name, const Diagram& diagram) {
    graph(name, to_svg(diagram), to_dot(diagram));
}

// Emits a picture of the graph that `draw` records. `draw` calls name() and backward() of the Picture.
template <std::invocable<Picture&> Draw>
void graph(std::string_view name, std::string title, const Draw& draw) {
    Picture::KeepValues keep_values;
    Picture picture(std::move(title));
    draw(picture);
    graph(name, picture.svg(), picture.dot());
}

template <class What>
requires requires(const std::string& title, const What& what) { sheet_of(title, what); }
void graph(std::string_view name, const std::string& title, const What& what) {
    graph(name, sheet_of(title, what).svg(), "");
}

}  // namespace tally::lesson

// Begins the body of a lesson. The arguments are the parameters, numbers that the learner may change.
#define LESSON(...) LESSON_ON("cpu", __VA_ARGS__)
// Also sets the default of --device.
#define LESSON_ON(device, ...)                                                                            \
    static void talk();                                                                                   \
    static const bool registered = tally::lesson::register_source(__FILE__, device, {__VA_ARGS__}, talk); \
    static void talk()

namespace {
using real = float;
using Scalar = tally::Var<double>;
using Tensor = tally::Var<tally::Array<real>>;

// Bounds the error of a sum with n successive roundings in `real`, relative to the sum of the magnitudes.
constexpr double roundings(int n) { return tally::lesson::gamma_bound<real>(n); }
}  // namespace
