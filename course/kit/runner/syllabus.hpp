// The course as it is meant to be gone through: the order, what each lesson needs, and what to keep of it.
#pragma once

#include <string_view>
#include <vector>

namespace tally::lesson {

struct Unit {
    std::string_view slug;
    int in_class;                         // minutes, with a discussion of each prediction
    std::vector<std::string_view> after;  // lessons without which it cannot be understood
    std::string_view task;                // the exercise that belongs to it, or nothing
    std::string_view rule;                // what to remember
    std::string_view attempt, command;    // one thing to try, and how
};

// In the order in which they are recommended; the numbers of the lessons are names, and have another order.
const std::vector<Unit>& syllabus();

const Unit* unit_with_task(std::string_view exercise);
const Unit* unit_of(std::string_view slug);  // nullptr: not in the syllabus
int place_of(std::string_view slug,
             int number);  // what to sort by; who is not in the syllabus comes last, by number

}  // namespace tally::lesson
