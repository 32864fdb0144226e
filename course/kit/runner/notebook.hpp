// A learner's own folder: the files they edit, what they replaced, and how it went. Nothing in it is ever lost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "course/kit/runner/answer_file.hpp"
#include "course/kit/runner/exercises.hpp"

namespace tally::lesson {

struct Entry {  // of one exercise
    int tries = 0, hints = 0;
    bool passed = false, shown = false;  // passed once, and not begun again since; the answer was shown
    std::vector<std::string> mistakes;   // that were recognised, in the order in which they were first made
};

class Notebook {
public:
    explicit Notebook(const std::string& work);  // WORK/exercises, and WORK/answers

    std::string file(const Exercise& exercise) const { return folder_ + "/" + exercise.stem() + ".cpp"; }
    std::string scratch() const { return folder_ + "/.built"; }
    bool has(const Exercise& exercise) const;
    void write(const Exercise& exercise, const std::string& text) const;
    // Puts the file aside under a name that is free, and says which.
    std::string keep(const Exercise& exercise) const;

    const AnswerFile& answers() const { return answers_; }
    const Entry& entry(const Exercise& exercise) { return entries_[exercise.slug]; }
    // passed, wrong, error, hint, shown or reset; and the known mistake, with what was said about it. Who passes what is a
    // lesson's task has done the lesson.
    void note(const Exercise& exercise, const std::string& event, const std::string& mistake = {},
              const std::string& sentence = {});

private:
    void take(const Noted& answer);

    std::string folder_;
    AnswerFile answers_;
    std::map<std::string, Entry> entries_;
};

}  // namespace tally::lesson
