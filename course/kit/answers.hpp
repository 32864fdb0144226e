// What a learner answered, as lines of plain text: fields with tabs between them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "course/kit/event.hpp"

namespace tally::lesson {

// A try at a question of a lesson, an event of an exercise, or what became of a lesson.
struct Noted {
    std::string what;         // question, exercise, lesson
    std::string of;           // its slug
    std::string number = {};  // of a question: counted from 1 within its lesson
    std::string how =
        {};  // right, wrong, skipped; passed, wrong, error, hint, shown, reset; done, begun, failed
    std::string which = {};  // of what was wrong or right: the option's letter, or the known mistake's name
    std::string given = {};  // the option as it stood there, or what was typed
    std::string sentence = {};  // what the learner was told about a mistake
    std::string question = {};  // as it was asked
};

// The first line of such a file, which names the fields.
constexpr std::string_view answers_heading = "what\tof\tnumber\thow\twhich\tgiven\tsentence\tquestion";

std::string in_one_line(const std::string& text);            // without what a terminal would obey
std::string line_of(const Noted& answer);                    // without the end of the line
std::optional<Noted> parse_answer(const std::string& line);  // nothing: it says nothing

// A question that was asked, and every try at it; one line where it was skipped.
std::vector<Noted> answers_of(const Reveal& reveal, const std::string& lesson);

// How the questions among them were answered; of each that was answered several times, the first time counts.
struct Predicted {
    int asked = 0, at_once = 0, later = 0, skipped = 0;
};
Predicted predicted(const std::vector<Noted>& answers);

}  // namespace tally::lesson
