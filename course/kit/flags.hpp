// The flags every lesson and the runner have, and what they and the surroundings decide.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "course/kit/dials.hpp"
#include "course/kit/layout.hpp"

namespace CLI {
class App;
}

namespace tally::lesson {

struct Flags {
    bool step = false, no_step = false, present = false;
    int from = 1;
    std::string device;  // empty: the lesson's own
    bool json = false, plain = false, ascii = false, quiet = false, yes = false;
    std::string color = "auto";
    int width = 0;  // 0: as wide as the window, at most 80
    std::uint64_t seed = 0;
    int digits = 4;
    std::string dtype;  // empty: the lesson's own
    int threads = 1;
    std::string products;                           // "ordered", "blas", or empty: as the environment says
    std::map<std::string, std::string> dials = {};  // the numbers that were turned, as typed
    std::string graph;  // write the picture of the lesson's graph here, and say nothing
};

void add_flags(CLI::App& app, Flags& flags);
// Those for the numbers that are turned. A lesson's --help has its own, with their range; the runner's has all.
void add_dials(CLI::App& app, Flags& flags, const std::vector<Dial>* only = nullptr);
// Those on which results depend, where they are not the default: " --seed 5 --dtype float64".
std::string what_matters(const Flags& flags);
std::string turned_in(const Flags& flags);               // "--micro 6 --rate 0.2"
std::vector<std::string> arguments(const Flags& flags);  // that give a lesson program the same flags

// Parses argv into what `app` was told about; an exit code when that already ends the program (0:
// --help, 2: usage).
struct Parsed {
    bool done = false;
    int code = 0;
};
Parsed parse(CLI::App& app, int argc, const char* const* argv);

struct Surroundings {
    bool input_is_terminal = false, output_is_terminal = false;
    std::string ci, term, no_color, locale;  // as the environment says; empty: not set

    static Surroundings of_this_process();
};

// How to render: decided in one place, so that it can be tested without a terminal.
struct Mode {
    bool waits = false;       // step mode: wait for a key after each step
    bool presents = false;    // and each step has the screen for itself, before a class
    bool rewrites = false;    // a progress bar may rewrite its line
    std::string not_waiting;  // why --step is refused; empty when it need not be
    Style style;
};
Mode mode_for(const Flags& flags, const Surroundings& around);

// Written to standard error as "name: message".
void complain(const std::string& program, const std::string& message);

}  // namespace tally::lesson
