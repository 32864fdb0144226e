// Parses the flags of lessons. Flags and environment variables select a viewer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "course/kit/layout.hpp"
#include "course/kit/lesson.hpp"
#include "course/kit/parameters.hpp"

namespace tally::lesson {

struct Flags {
    bool step = false, no_step = false, present = false;
    int from = 1;
    std::string device;  // empty: the default of the lesson
    bool json = false, plain = false, ascii = false, quiet = false, yes = false;
    std::string color = "auto";
    int width = 0;  // 0: as wide as the window, at most 80
    std::uint64_t seed = 0;
    int digits = 4;
    int threads = 1;
    std::string products;                              // "ordered", "blas", or empty: from the environment
    std::map<std::string, std::string> settings = {};  // values of parameters, as typed
    std::string graph;  // the file for the picture of the lesson's graph; the lesson prints nothing then
    bool help = false, describe = false;
    int report = -1;           // from the runner: a descriptor for answers and the result
    std::string rank_results;  // set in a rank: the file for its results
};

// Stores the command line in `flags`. Returns an error, or an empty text.
std::string parse(Flags& flags, const std::vector<LessonParameter>& parameters,
                  const std::vector<std::string>& words);
std::string help_text(const Lesson& lesson);  // one line for each option
// Returns the flags that decide the numbers of this run, without default values: {"--micro=6", "--seed=5"}.
std::vector<std::string> arguments(const Flags& flags);
std::string repeat_flags(const Flags& flags);   // " --micro 6 --seed 5 --present"
std::string settings_text(const Flags& flags);  // "--micro 6 --rate 0.2"

struct Environment {
    bool input_is_terminal = false, output_is_terminal = false;
    std::string ci, term, no_color, locale;  // environment variables; empty: not set

    static Environment current();
};

// Describes how a viewer renders events. The function mode_for() reads no terminal, so that tests need none.
struct Mode {
    bool waits = false;       // step mode: waits for a key after each step
    bool presents = false;    // --present: each step has its own screen
    bool rewrites = false;    // a progress bar may rewrite its line
    std::string not_waiting;  // why --step is an error; empty if waiting is possible
    Style style;
};
Mode mode_for(const Flags& flags, const Environment& around);

void print_error(const std::string& program, const std::string& message);

}  // namespace tally::lesson
