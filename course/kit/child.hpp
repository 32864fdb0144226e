// Runs a lesson program as a child process.
#pragma once

#include <string>
#include <vector>

namespace tally::lesson {

struct ChildResult {
    int code = 0;          // the exit code of the child
    int signal = 0;        // the signal that ended the child, or 0
    int end_signal = 0;    // the first signal that asked this program to end while the child ran, or 0
    std::string captured;  // the output of the child to the captured descriptor
};

// Runs the command in this terminal and captures the output of the command on descriptor 3. Forwards signals
// that end or stop a program to the child first, because the child must restore the terminal.
constexpr int report_descriptor = 3;
ChildResult run_reporting(const std::vector<std::string>& command);
// Works like run_reporting() for any descriptor, but does not add the flag --report to the command.
ChildResult run_capturing(const std::vector<std::string>& command, int descriptor);

// captured_from() throws this if a signal asked this program to end while the child ran.
struct AskedToEnd {
    int signal;
};
std::string captured_from(const std::vector<std::string>& command);  // returns the standard output

constexpr int exit_code_of(int signal) { return 128 + signal; }

}  // namespace tally::lesson
