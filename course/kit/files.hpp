// These functions either write a complete file or throw an error.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tally::lesson {

// This error is thrown if a file cannot be read or written. The program then ends with exit code 5.
struct WriteError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// This is thrown if a reader such as `head` has closed standard output. The program then ends silently with
// the exit code of SIGPIPE. OutputClosed is not a std::exception, so handlers of errors do not catch it.
struct OutputClosed {
    static constexpr int exit_code = 128 + 13;
};

void make_folder(const std::string& path);  // with its parent folders; throws WriteError

// Returns the first of PATH.1ENDING, PATH.2ENDING, ... that does not exist.
std::string free_name(const std::string& path, const std::string& ending);

// Writes a temporary file in the same folder and renames it. Throws WriteError.
void write_whole(const std::string& path, std::string_view content);

// Writes without a buffer, so that a crash loses nothing. Throws WriteError or OutputClosed.
void write_to(int descriptor, std::string_view content);

}  // namespace tally::lesson
