// These functions either write a complete file or throw an error.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tally::lesson {

// A WriteError is thrown if a file cannot be read or written. A WriteError ends the program with exit code 5.
struct WriteError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// OutputClosed is thrown if a reader such as `head` has closed standard output, and ends the program silently
// with `exit_code`. OutputClosed is not a std::exception, so that handlers of errors do not catch it.
struct OutputClosed {
    static constexpr int exit_code = 128 + 13;
};

void make_folder(const std::string& path);  // with its parent folders; throws WriteError

// Writes a temporary file in the same folder, and then renames the temporary file. Throws WriteError.
void write_whole(const std::string& path, std::string_view content);

// Writes without a buffer, so that a crash of the program loses no output. Throws WriteError or OutputClosed.
void write_to(int descriptor, std::string_view content);

}  // namespace tally::lesson
