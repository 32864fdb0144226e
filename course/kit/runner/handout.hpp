// ./learn handout writes sheets for a class from the events of lessons.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "course/kit/flags.hpp"
#include "course/kit/runner/course.hpp"

namespace tally::lesson {

struct LessonEvents {
    Lesson lesson;
    std::string events;  // lines of JSON
};

// Each function returns an HTML page to print. The students' sheet has all questions, with space for answers.
// `toy` is a lesson that shows x and w, or nullptr.
std::string students_sheet(const std::vector<LessonEvents>& lessons, const LessonEvents* toy);
std::string teachers_sheet(const std::vector<LessonEvents>& lessons);

// Writes both sheets and returns the exit code. If `file` is empty, the sheets are in the folder `work`.
int write_handout(const std::vector<Program>& all, const std::vector<const Program*>& chosen,
                  const Flags& flags, std::string file, const std::string& work);

}  // namespace tally::lesson
