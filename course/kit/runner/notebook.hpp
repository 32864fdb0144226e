// Manages a learner's files and results, and never overwrites a file that the learner has edited.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "course/kit/runner/answer_file.hpp"
#include "course/kit/runner/exercises.hpp"

namespace tally::lesson {

struct Entry {  // the state of one exercise
    int tries = 0, hints = 0;
    bool passed = false, shown = false;  // passed since the last reset; the answer was shown
    std::vector<std::string> mistakes;   // recognised mistakes in the order of their first occurrence
};

class Notebook {
public:
    explicit Notebook(const std::string& work);  // WORK/exercises, and WORK/answers

    std::string file(const Exercise& exercise) const { return folder_ + "/" + exercise.name() + ".cpp"; }
    std::string scratch() const { return folder_ + "/.built"; }
    bool has(const Exercise& exercise) const;
    void write(const Exercise& exercise, const std::string& text) const;
    // Renames the learner's file to an unused name and returns the new name.
    std::string keep(const Exercise& exercise) const;

    const AnswerFile& answers() const { return answers_; }
    const Entry& entry(const Exercise& exercise) { return entries_[exercise.slug]; }
    // Records an event: passed, wrong, error, hint, shown or reset. If a learner passes an exercise, its
    // lesson counts as done.
    void note(const Exercise& exercise, const std::string& event, const std::string& mistake = {},
              const std::string& sentence = {});

private:
    void take(const AnswerRecord& answer);

    std::string folder_;
    AnswerFile answers_;
    std::map<std::string, Entry> entries_;
};

}  // namespace tally::lesson
