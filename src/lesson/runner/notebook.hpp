// A learner's own folder: the files they edit, what they replaced, and a log of how it went. Nothing in it is ever lost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tally/lesson/runner/exercises.hpp"

namespace tally::lesson {

struct Entry {  // of the log, for one exercise
    int tries = 0, hints = 0;
    bool passed = false, shown = false;  // passed once, and not begun again since; the answer was shown
    std::vector<std::string> mistakes;   // that were recognised, in the order in which they were first made
};

class Notebook {
public:
    explicit Notebook(const std::string& work);  // WORK/exercises; a broken log is kept aside, and said

    std::string file(const Exercise& exercise) const { return folder_ + "/" + exercise.stem() + ".cpp"; }
    std::string scratch() const { return folder_ + "/.built"; }
    bool has(const Exercise& exercise) const;
    void write(const Exercise& exercise, const std::string& text) const;
    // Puts the file aside under a name that is free, and says which.
    std::string keep(const Exercise& exercise) const;

    const Entry& entry(const Exercise& exercise) { return entries_[exercise.slug]; }
    // An event is one word, and perhaps another: passed, wrong MISTAKE, error, hint, shown, reset.
    void note(const Exercise& exercise, const std::string& event, const std::string& detail = {});

private:
    bool take(const std::string& line);

    std::string folder_;
    std::map<std::string, Entry> entries_;
};

}  // namespace tally::lesson
