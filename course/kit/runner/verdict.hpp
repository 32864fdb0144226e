// Compiles and checks an answer to an exercise, and explains the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "course/kit/runner/exercises.hpp"

namespace tally::lesson {

enum class Judged { passed, wrong, not_yet, not_compiled, broken };  // broken: a crash, a timeout, ...

struct Verdict {
    Judged judged = Judged::broken;
    std::string mistake;             // the name of the recognised mistake
    std::string sentence;            // one or two sentences about the mistake
    std::string where;               // the test case in which the mistake appeared
    std::vector<std::string> shown;  // lines of output for this test case
    std::string cases;               // "5 of 8 cases are right (seed 0)"
    int end_signal = 0;              // the signal that asked this program to end, or 0
};

// Compiles the file to a library in the folder `scratch`, runs the library, and removes it.
Verdict judge(const Exercises& exercises, const Exercise& exercise, const std::string& file,
              const std::string& scratch, std::uint64_t seed);

// Explains the first error in the compiler's output by a sentence and by the source lines of `file`.
Verdict first_error(const std::string& said, const std::string& file);

}  // namespace tally::lesson
