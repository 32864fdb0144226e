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
    std::string events;
};

// Returns an HTML page to print. `toy` is a lesson that shows x and w, or nullptr.
std::string students_sheet(const std::vector<LessonEvents>& lessons, const LessonEvents* toy);
std::string teachers_sheet(const std::vector<LessonEvents>& lessons);

// Writes the students' sheet and the teachers' sheet. Uses the folder `work` if `file` is empty.
int write_handout(const std::vector<Program>& all, const std::vector<const Program*>& chosen,
                  const Flags& flags, std::string file, const std::string& work);

}  // namespace tally::lesson
