// The course as it is built: which lessons there are, and which of them a student has finished.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tally/lesson/lesson.hpp"

namespace tally::lesson {

struct Program {
    Lesson lesson;
    std::string path;
};

// The executables lesson_* in a folder, by number, each with what it says it is. Throws std::runtime_error.
std::vector<Program> find_programs(const std::string& folder);

// By slug, a part of one, or number; otherwise nullptr, and a sentence in `message`.
const Program* find_program(const std::vector<Program>& programs, const std::string& which,
                            std::string& message);

// A plain text file, one slug per line. What it says about lessons that are not built here is kept.
class StudentProgress {
public:
    explicit StudentProgress(std::string folder);
    bool done(const std::string& slug) const { return slugs_.count(slug) > 0; }
    void record(const std::string& slug,
                bool good);  // the checks are the truth: a failure takes a slug out again

private:
    std::string folder_;
    std::set<std::string> slugs_;
};

}  // namespace tally::lesson
