// Writing that is whole or not at all, and says why when it is not.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tally::lesson {

// Reading or writing failed: exit code 5.
struct WriteError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Whoever read standard output has left, as head does: the program ends as one that SIGPIPE ends, and says nothing. No
// std::exception, so that nobody takes it for an error.
struct NobodyReads {
    static constexpr int exit_code = 128 + 13;
};

void make_folder(const std::string& path);  // and those it lies in; throws WriteError

// The first of PATH.1ENDING, PATH.2ENDING, ... that is not there yet.
std::string free_name(const std::string& path, const std::string& ending);

// Through a temporary name beside it and a rename. Throws WriteError.
void write_whole(const std::string& path, std::string_view content);

// Straight to the file descriptor, unbuffered, so that nothing is lost in a crash.
// Throws WriteError or NobodyReads.
void write_to(int descriptor, std::string_view content);

}  // namespace tally::lesson
