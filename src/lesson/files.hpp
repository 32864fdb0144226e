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

void make_folder(const std::string& path);  // and those it lies in; throws WriteError

// Through a temporary name beside it and a rename. Throws WriteError.
void write_whole(const std::string& path, std::string_view content);

// Straight to the file descriptor, unbuffered, so that nothing is lost in a crash. Throws WriteError, also on
// a closed pipe.
void write_to(int descriptor, std::string_view content);

}  // namespace tally::lesson
