// Writes a learner's answers as lines of text for the runner.
#pragma once

#include <string>

#include "course/kit/event.hpp"

namespace tally::lesson {

// Returns one line for each answer to the question, or one line if the learner skipped the question. Tabs separate
// the fields of a line, which the class Answer in course/runner/answers.py names.
std::string answer_lines(const Reveal& reveal, const std::string& lesson);

}  // namespace tally::lesson
