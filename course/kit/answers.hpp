// Writes and reads a learner's answers as lines of text. Tabs separate the fields of a line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "course/kit/event.hpp"

namespace tally::lesson {

// Records one answer to a question, one event of an exercise, or the result of one lesson.
struct AnswerRecord {
    std::string what;  // question, exercise, lesson
    std::string of;    // the slug of the lesson or exercise
    // of a question, from 1 within the lesson; of a lesson that was begun: the step at which the learner left
    std::string number = {};
    // right, wrong, skipped; passed, wrong, error, hint, shown, reset; done, begun, failed
    std::string how = {};
    std::string which = {};     // the letter of the option, or the name of the known mistake
    std::string given = {};     // the text of the option, or the typed number
    std::string sentence = {};  // the reply to a mistake
    std::string question = {};  // the text of the question
};

constexpr std::string_view answers_heading = "what\tof\tnumber\thow\twhich\tgiven\tsentence\tquestion";

std::string in_one_line(const std::string& text);                   // replaces control characters
std::string line_of(const AnswerRecord& answer);                    // without a line end
std::optional<AnswerRecord> parse_answer(const std::string& line);  // empty if the line is not an answer

// Returns one record for each answer to the question, or one record if the learner skipped the question.
std::vector<AnswerRecord> answers_of(const Reveal& reveal, const std::string& lesson);

// Counts the questions that the learner answered correctly at once or later, or skipped, over all runs.
struct Predicted {
    int asked = 0, at_once = 0, later = 0, skipped = 0;
};
Predicted predicted(const std::vector<AnswerRecord>& answers);

}  // namespace tally::lesson
