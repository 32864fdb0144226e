// write_file_atomically() writes a whole file or keeps the old file.
#pragma once

#include <string>
#include <string_view>

namespace tally {

// Writes a temporary file PATH.tmp-NUMBER-NUMBER, syncs and renames it, and syncs the folder. A failure
// throws Error with the path and the reason, keeps the old file and deletes the temporary file.
// If only the folder could not be synced, the new file exists and an Error is thrown. Without permission to
// read the folder, or if the file system cannot sync folders, a power cut may restore the old file.
//
// Symbolic links are followed. A pipe or a device is written to directly. A killed process leaves the old or
// the new file, and perhaps a temporary file, which later runs ignore. If several processes write the same
// file at the same time, the last process determines the content of the file.
void write_file_atomically(const std::string& path, std::string_view text);

// If the file cannot be created or opened, throws the Error that writing would throw.
void require_writable(const std::string& path);

// Follows symbolic links and returns whether the file exists. Throws Error if the path cannot be checked.
bool file_exists(const std::string& path);

}  // namespace tally
