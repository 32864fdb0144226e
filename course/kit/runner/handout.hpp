// ./learn handout: sheets of paper for a class, made of what the lessons themselves say.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "course/kit/flags.hpp"
#include "course/kit/runner/course.hpp"

namespace tally::lesson {

// What a lesson said, as lines of JSON.
struct LessonEvents {
    Lesson lesson;
    std::string events;
};

// One page of HTML without scripts, that prints: for students what comes before the first question, then all questions
// with room for answers; for the teacher everything, with answers. `toy`: a lesson that shows x and w, or nullptr.
std::string students_sheet(const std::vector<LessonEvents>& lessons, const LessonEvents* toy);
std::string teachers_sheet(const std::vector<LessonEvents>& lessons);

// Both for these lessons, into `file` and beside it; the exit code. An empty name: in the folder work.
int write_handout(const std::vector<Program>& all, const std::vector<const Program*>& chosen,
                  const Flags& flags, std::string file, const std::string& work);

}  // namespace tally::lesson
