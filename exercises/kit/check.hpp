// An exercise for its check: its texts, the examination of an answer, and the known mistakes.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "answer_test.hpp"

namespace exercise {

struct About {          // course/runner/exercises.py reads these fields from the source
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

// The answers of an exercise; write_mistakes.py writes them from the file of mistakes.
template <class Functions> struct Answers {
    std::vector<const char*> names;  // names of the functions, in the order of the struct
    Functions right;
    std::vector<Mistake<Functions>> mistakes;
};

struct Exercise {
    int number;
    std::string slug;
    About about;
    std::vector<const char*> functions;                             // that an answer defines
    std::vector<std::pair<std::string, std::string>> mistakes;      // name and sentence
    std::function<void(AnswerTest&, void* const*)> examine_loaded;  // an answer's functions, in this order
    std::function<void(AnswerTest&)> examine_right;
    std::function<void(AnswerTest&, std::size_t)> examine_mistake;
};

std::vector<Exercise>& all_exercises();

// Returns the number and the slug of the exercise in a folder: exercises/05_the_tail/check.cpp gives 5, the-tail.
std::pair<int, std::string> named_by(const char* check_file);

// An Add at the end of each check.cpp adds its exercise to the course. __builtin_FILE() names that check.cpp; clang 14
// does not have std::source_location.
struct Add {
    template <class Functions> Add(About about, void (*examine)(AnswerTest&, const Functions&),
                                   const Answers<Functions>& answers,
                                   const char* check_file = __builtin_FILE()) {
        static_assert(std::is_trivially_copyable_v<Functions>);
        const auto [number, slug] = named_by(check_file);
        Exercise added{
            .number = number,
            .slug = slug,
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
