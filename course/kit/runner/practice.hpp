// Implements ./learn check, hint, reset, solution, score and dev-check.
#pragma once

#include <string>

#include "course/kit/flags.hpp"

namespace CLI {
class App;
}

namespace tally::lesson {

struct PracticeWords {
    CLI::App *check = nullptr, *hint = nullptr, *reset = nullptr, *solution = nullptr, *score = nullptr,
             *dev_check = nullptr;
    std::string which;
    bool watch = false;
};

void add_practice(CLI::App& app, PracticeWords& words);
bool asked_for_practice(const PracticeWords& words);
// Returns the exit code. `built` has the program exercise-checks, `lessons` has the programs of the lessons,
// and `work` has the learner's files.
int practice(const PracticeWords& words, const Flags& flags, const std::string& built,
             const std::string& lessons, const std::string& work);

}  // namespace tally::lesson
