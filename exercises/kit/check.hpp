// An exercise for its check: its texts, the examination of an answer, and the known mistakes.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "answer_test.hpp"

namespace exercise {

struct About {
    int number;
    const char* slug;
    const char* title;  // the task in a few words
    int minutes;
    const char* lesson;              // the lesson on this topic
    std::vector<const char*> hints;  // a question, a pointer, almost the code
    const char* why;                 // printed after a pass
};

// Functions is a struct of function pointers, which `right` and each wrong answer define.
template <class Functions> struct Mistake {
    const char* name;
    Functions functions;
    const char* sentence;
};

// The answers of an exercise; exercise-mistakes writes them from the file of mistakes.
template <class Functions> struct Answers {
    std::vector<const char*> names;  // names of the functions, in the order of the struct
    Functions right;
    std::vector<Mistake<Functions>> mistakes;
};

struct Exercise {
    About about;
    std::vector<const char*> functions;                             // that an answer defines
    std::vector<std::pair<std::string, std::string>> mistakes;      // name and sentence
    std::function<void(AnswerTest&, void* const*)> examine_loaded;  // an answer's functions, in this order
    std::function<void(AnswerTest&)> examine_right;
    std::function<void(AnswerTest&, std::size_t)> examine_mistake;
};

std::vector<Exercise>& all_exercises();

// An Add at the end of each file of checks adds its exercise to the course.
struct Add {
    template <class Functions>
    Add(About about, void (*examine)(AnswerTest&, const Functions&), const Answers<Functions>& answers) {
        static_assert(std::is_trivially_copyable_v<Functions>);
        Exercise added{
            .about = about,
            .functions = answers.names,
            .mistakes = {},
            .examine_loaded =
                [=](AnswerTest& look, void* const* loaded) {
                    Functions functions;
                    std::memcpy(&functions, loaded, sizeof functions);
                    examine(look, functions);
                },
            .examine_right = [=, right = answers.right](AnswerTest& look) { examine(look, right); },
            .examine_mistake = [=, known = answers.mistakes](
                                   AnswerTest& look,
                                   std::size_t which) { examine(look, known[which].functions); }};
        for (const auto& mistake : answers.mistakes)
            added.mistakes.emplace_back(mistake.name, mistake.sentence);
        all_exercises().push_back(std::move(added));
    }
};

}  // namespace exercise
