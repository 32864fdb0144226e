// A lesson program as a child process.
#pragma once

#include <string>
#include <vector>

namespace tally::lesson {

struct Finished {
    int code = 0;          // its exit code, when it exited
    int signal = 0;        // what ended it, when it did not
    std::string captured;  // what it wrote to standard output or to its report
};

// Its terminal is ours. What it writes to standard output is captured ...
Finished run_captured(const std::vector<std::string>& command);
// ... or shown, and what it writes to descriptor 3 is captured. Ctrl-C is left to it; SIGTERM and SIGHUP are
// passed on.
constexpr int report_descriptor = 3;
Finished run_reporting(const std::vector<std::string>& command);

}  // namespace tally::lesson
