// Defines the recommended order of the lessons, and the prerequisites and the rule of each lesson.
#pragma once

#include <string_view>
#include <vector>

namespace tally::lesson {

struct Unit {
    std::string_view slug;
    int in_class;                         // minutes in class, with a discussion of each prediction
    std::vector<std::string_view> after;  // lessons that this lesson builds on
    std::string_view task;                // the exercise of the lesson, or empty
    std::string_view rule;                // the sentence to remember
    std::string_view attempt, command;    // a suggestion to try, and its command
};

// Returns all units in the recommended order, which differs from the order of the lesson numbers.
const std::vector<Unit>& syllabus();

const Unit* unit_with_task(std::string_view exercise);
const Unit* unit_of(std::string_view slug);  // nullptr: not in the syllabus
int place_of(std::string_view slug,
             int number);  // the sort key; lessons outside the syllabus are last

}  // namespace tally::lesson
