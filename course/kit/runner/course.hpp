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

// Returns the lesson programs in a folder, in the order of the syllabus. Throws if the folder has none.
std::vector<Program> find_programs(const std::string& folder);

// Returns nullptr and sets `message` unless exactly one program matches.
const Program* find_program(const std::vector<Program>& programs, const std::string& which,
                            std::string& message);

}  // namespace tally::lesson
