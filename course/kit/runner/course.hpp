// The course as it is built: which lessons there are, and which of them is meant.
#pragma once

#include <string>
#include <vector>

#include "course/kit/lesson.hpp"

namespace tally::lesson {

struct Program {
    Lesson lesson;
    std::string path;
};

// The executables lesson_* in a folder, each with what it says it is, in the order of the syllabus.
// Throws std::runtime_error.
std::vector<Program> find_programs(const std::string& folder);

// By slug, a part of one, or number; otherwise nullptr, and a sentence in `message`.
const Program* find_program(const std::vector<Program>& programs, const std::string& which,
                            std::string& message);

}  // namespace tally::lesson
