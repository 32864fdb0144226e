// write_file_atomically() writes a whole file or keeps the old file.
#pragma once

#include <string>
#include <string_view>

namespace tally {

// Writes a temporary file PATH.tmp-NUMBER-NUMBER, syncs and renames it, and syncs the folder. If writing
// fails, keeps the old file, deletes the temporary file, and throws Error with the path and the reason.
// If only the sync of the folder fails, throws Error although the new file exists. If the folder cannot be
// read, or the file system cannot sync folders, a power cut may restore the old file.
//
// Follows symbolic links, and writes directly to a pipe or a device. If the process is killed, the complete
// old or the complete new file exists. Later runs ignore a temporary file that remains. If several
// processes write the same file, the last process determines the content of the file.
void write_file_atomically(const std::string& path, std::string_view text);

// Throws the Error of write_file_atomically() if the file cannot be created or opened.
void require_writable(const std::string& path);

// Follows symbolic links and returns whether the file exists. Throws Error if the path cannot be checked.
bool file_exists(const std::string& path);

}  // namespace tally
