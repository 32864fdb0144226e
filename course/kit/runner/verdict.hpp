// One answer on its way through the compiler and the check, and what is to be said about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "course/kit/runner/exercises.hpp"

namespace tally::lesson {

enum class Judged { passed, wrong, not_yet, not_compiled, broken };  // broken: it crashed, never ended, ...

struct Verdict {
    Judged judged = Judged::broken;
    std::string mistake;             // the name of the one that was recognised
    std::string sentence;            // what it is, in one or two sentences
    std::string where;               // the case in which it was seen
    std::vector<std::string> shown;  // what is to be seen there: as it stands
    std::string cases;               // "5 of 8 cases are right (seed 0)"
    int asked_by = 0;                // the signal by which somebody ended it
};

// Compiles and runs the file; `scratch` is a folder for what comes of it, and is empty afterwards.
Verdict judge(const Exercises& exercises, const Exercise& exercise, const std::string& file,
              const std::string& scratch, std::uint64_t seed);

// What a compiler says, as the first error in `file`: a sentence, and the lines that show it.
Verdict first_error(const std::string& said, const std::string& file);

}  // namespace tally::lesson
