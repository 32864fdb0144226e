// Reads the page of a lesson, lessons/NN_slug.md: the title, the minutes, the questions and the hint for PyTorch. The runner
// (course/runner/lessons.py) reads the rest.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "course/kit/prediction.hpp"

namespace tally::lesson {

// A question as the page contains it. The lesson replaces places such as {n} by its own numbers.
//
//     ### few-words
//
//     How much does a word count?
//
//     * **too much**
//     * too little — When fewer words share the same part, each gets more of it.
//
//     Hint: How many words share one mean?
//     Hint: Compare the smallest micro-batch with the largest.
//     Answer: A word counts {weight} instead of 1/16.
//
// The right option is bold. If all options are numbers, the learner types a number, and the right option may
// end in "(within 0.005)".
struct PageQuestion {
    struct Option {
        std::string text, mistake;  // without a mistake: the option is right
        std::size_t line;
    };
    std::string id, text = {};
    std::vector<Option> options = {};
    std::string within = {};
    std::vector<std::string> hints = {};
    std::string answer = {};
    std::size_t line = 0;  // of the heading
};

struct Page {
    std::string file;  // as errors name it
    int number = 0, minutes = 0;
    std::string title = {};
    std::vector<PageQuestion> questions = {};
    std::string in_pytorch = {};  // "In PyTorch: ..." from the section "## Remember"

    const PageQuestion& question(std::string_view id) const;  // throws if the page has no such question
};

// Throws an error with the file, the line, and what the line should contain.
Page parse_page(const std::string& file, std::string_view text);
Page read_page(const std::filesystem::path& path);

// Wraps the paragraphs of a page for a pager, and leaves out the questions, which show their answers.
std::string page_to_read(const std::filesystem::path& path, std::size_t width);

using Values = std::vector<std::pair<std::string, std::string>>;  // {"n", "3"} replaces {n} by 3

// Returns the question with all values in place. If the learner `changed` a parameter, wrong numbers that equal
// another number are dropped. Otherwise equal numbers throw std::logic_error.
Prediction prediction_of(const Page& page, std::string_view id, const Values& values, bool changed);

}  // namespace tally::lesson
