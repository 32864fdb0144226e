// From an event to lines of text, the same for the terminal and the plain log.
#pragma once

#include <string>
#include <vector>

#include "course/kit/event.hpp"

namespace tally::lesson {

struct Style {
    std::size_t width = 80;
    int digits = 4;
    bool ascii = false;
    bool colour = false;  // 16 ANSI colours; every state is a word as well
};

// The lines of one event, each at most style.width columns, without line ends. Some events have none.
std::vector<std::string> lines_of(const Event& event, const Lesson& lesson, const Style& style);

// What is said of a try that is wrong, before the next.
std::vector<std::string> retort_lines(const Prediction& prediction, const Try& wrong, const Lesson& lesson,
                                      const Style& style);

// "lesson 07 divide          6 steps  4 checks  [ok]    0.01 s", and for a failure where it is and how to
// see it again.
std::vector<std::string> log_lines(const Lesson& lesson, const End& end, double seconds);

enum class Tone { bold, good, bad, warn, ask, source };
std::string painted(const std::string& text, Tone tone, const Style& style);

}  // namespace tally::lesson
