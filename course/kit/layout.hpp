// Converts an event to lines of text. The lines are the same for a terminal and for a plain log.
#pragma once

#include <string>
#include <vector>

#include "course/kit/event.hpp"

namespace tally::lesson {

struct Style {
    std::size_t width = 80;
    int digits = 4;
    bool ascii = false;
    bool colour = false;  // 16 ANSI colours; every state is printed as a word too
};

// Returns the lines of an event. A line has at most style.width columns. The result is empty for some events.
std::vector<std::string> lines_of(const Event& event, const Lesson& lesson, const Style& style);

// Returns the reply to a wrong answer. The viewer prints the reply before the next attempt.
std::vector<std::string> reply_lines(const Prediction& prediction, const Try& wrong, const Lesson& lesson,
                                     const Style& style);

enum class Tone { bold, good, bad, warn, ask, source };
std::string painted(const std::string& text, Tone tone, const Style& style);

}  // namespace tally::lesson
