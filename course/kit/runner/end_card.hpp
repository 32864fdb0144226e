// Makes the card that a lesson shows last, with the rule, the learner's result and the next lesson.
#pragma once

#include <string>
#include <vector>

#include "course/kit/answers.hpp"
#include "course/kit/layout.hpp"
#include "course/kit/lesson.hpp"

namespace tally::lesson {

struct Ending {
    const Lesson& lesson;
    const Lesson* next;                 // the next lesson that is not done; nullptr: all are done
    std::vector<AnswerRecord> answers;  // of this run
    bool done;
    std::size_t lessons_done, lessons;
};

std::vector<std::string> end_card(const Ending& ending, const Style& style);

}  // namespace tally::lesson
