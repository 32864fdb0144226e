// What is shown when a lesson has ended: what to keep of it, how it went, and what comes next.
#pragma once

#include <string>
#include <vector>

#include "course/kit/answers.hpp"
#include "course/kit/layout.hpp"
#include "course/kit/lesson.hpp"

namespace tally::lesson {

struct Ending {
    const Lesson& lesson;
    const Lesson* next;          // that is not done; nullptr: none is left
    std::vector<Noted> answers;  // of this time
    bool done;
};

std::vector<std::string> end_card(const Ending& ending, const Style& style);

}  // namespace tally::lesson
