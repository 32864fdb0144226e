// Writes a learner's answers as lines of text for the runner (course/runner/answers.py). Tabs separate the fields of a line.
#pragma once

#include <string>
#include <vector>

#include "course/kit/event.hpp"

namespace tally::lesson {

// Records one answer to a question.
struct AnswerRecord {
    std::string what;           // "question"; the runner adds records of lessons and exercises
    std::string of;             // the slug of the lesson
    std::string number = {};    // of the question, from 1
    std::string how = {};       // right, wrong, skipped
    std::string which = {};     // the letter of the option
    std::string given = {};     // the text of the option, or the typed number
    std::string sentence = {};  // the reply to a mistake
    std::string question = {};  // the text of the question
};

std::string line_of(const AnswerRecord& answer);  // without a line end; replaces control characters

// Returns one record for each answer to the question, or one record if the learner skipped the question.
std::vector<AnswerRecord> answers_of(const Reveal& reveal, const std::string& lesson);

}  // namespace tally::lesson
