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

// Returns the lesson programs of a folder in syllabus order. Throws if the folder contains no program.
std::vector<Program> find_programs(const std::string& folder);

// If no program matches, or several programs match, returns nullptr and sets `message`.
const Program* find_program(const std::vector<Program>& programs, const std::string& which,
                            std::string& message);

}  // namespace tally::lesson
