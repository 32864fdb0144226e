// ./learn class FOLDER counts the mistakes of a class in the learners' files of answers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "course/kit/answers.hpp"
#include "course/kit/flags.hpp"

namespace tally::lesson {

struct Misconception {
    AnswerRecord answer;       // the answer of one of these learners
    std::size_t learners = 0;  // the number of learners who made this mistake
    std::size_t of = 0;        // the number of learners who answered this question or tried this exercise
};

// Counts the mistakes in the answers of each learner. Returns the most frequent mistakes first.
std::vector<Misconception> misconceptions(const std::vector<std::vector<AnswerRecord>>& learners);

// Draws the first ten mistakes as SVG. Labels each bar with the question or exercise and a text.
std::string chart_of(const std::vector<Misconception>& all, std::size_t learners);

// Prints the mistakes in the files of `folder` and writes the picture to `file`. Returns the exit code.
int show_class(const std::string& folder, const std::string& file, const Flags& flags, const Style& style);

}  // namespace tally::lesson
