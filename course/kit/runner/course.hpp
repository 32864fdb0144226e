// Finds the programs of the lessons that were built.
#pragma once

#include <string>
#include <vector>

#include "course/kit/lesson.hpp"

namespace tally::lesson {

struct Program {
    Lesson lesson;
    std::string path;
};

// Returns the programs lesson_* of a folder in the order of their numbers, which is that of the course. Throws std::runtime_error if there is none.
std::vector<Program> find_programs(const std::string& folder);

// Finds a program by slug, part of a slug or number. Otherwise returns nullptr and sets `message`.
const Program* find_program(const std::vector<Program>& programs, const std::string& which,
                            std::string& message);

}  // namespace tally::lesson
