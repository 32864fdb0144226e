// A lesson program as a child process.
#pragma once

#include <string>
#include <vector>

namespace tally::lesson {

struct UpdateResult {
    int code = 0;          // its exit code, when it exited
    int signal = 0;        // what ended it, when it did not
    int asked_by = 0;      // the signal that meanwhile asked us to end, if one did
    std::string captured;  // what it wrote to its report
};

// Its terminal is ours, and shows what it writes; what it writes to descriptor 3 is captured. A signal that
// would end or stop us goes to it, and we end or stop when it has: until then the terminal is not as it was.
constexpr int report_descriptor = 3;
UpdateResult run_reporting(const std::vector<std::string>& command);
// The same for a program that is not told so, and for another descriptor.
UpdateResult run_capturing(const std::vector<std::string>& command, int descriptor);

// What it writes to standard output, for one that only answers. Throws AskedToEnd when a
// signal came meanwhile.
struct AskedToEnd {
    int signal;
};
std::string captured_from(const std::vector<std::string>& command);

constexpr int exit_code_of(int signal) { return 128 + signal; }

}  // namespace tally::lesson
