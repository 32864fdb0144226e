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
    std::string mistake;               // the name of the recognised mistake
    std::string sentence;              // one or two sentences about the mistake
    std::string where;                 // the test case in which the mistake appeared
    std::vector<std::string> shown;    // lines of output for this test case
    std::string parts;                 // "Right: f and g (2 of 5). Still wrong: h, i and j."
    std::vector<std::string> trained;  // results of a training with the learner's code, after a pass
    std::string cases;                 // "5 of 8 cases are right (seed 0)"
    int end_signal = 0;                // the signal that asked this program to end, or 0
};

// Compiles `file` to a library in the folder `scratch`, checks the library and deletes the library.
Verdict judge(const Exercises& exercises, const Exercise& exercise, const std::string& file,
              const std::string& scratch, std::uint64_t seed);

// Explains the compiler's first error with a sentence and with the lines of `file` that caused the error.
// `given` is the text of the exercise's given.hpp, whose types have the members that the sentence lists.
Verdict first_error(const std::string& said, const std::string& file, const std::string& given = {});

}  // namespace tally::lesson
