// write_file_atomically: a file appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace tally {

// Writes beside `path` under a temporary name, syncs, renames. Throws Error with the path and the reason, and
// then leaves neither a temporary nor a changed file. What is no regular file (a pipe, a device) is written
// to directly.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace tally
