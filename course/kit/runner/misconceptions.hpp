// ./learn class FOLDER: which mistakes a class has made, from the files of its learners' answers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "course/kit/answers.hpp"
#include "course/kit/flags.hpp"

namespace tally::lesson {

struct Misconception {
    Noted noted;               // as one of them made it
    std::size_t learners = 0;  // that made it, once or several times
    std::size_t of = 0;        // that answered this question, or tried this exercise
};

// Each learner's answers; the most frequent first.
std::vector<Misconception> misconceptions(const std::vector<std::vector<Noted>>& learners);

// The first of them as a picture: a bar, where it was, and its sentence.
std::string chart_of(const std::vector<Misconception>& all, std::size_t learners);

// The exit code. The picture goes to `file`.
int show_class(const std::string& folder, const std::string& file, const Flags& flags, const Style& style);

}  // namespace tally::lesson
