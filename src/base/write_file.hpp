// write_file_atomically() writes a whole file or keeps the old file.
#pragma once

#include <string>
#include <string_view>

namespace tally {

// Writes a temporary file PATH.tmp-NUMBER-NUMBER, syncs and renames it, and syncs the folder. Throws Error
// with the path and the reason if writing fails, and then keeps the old file and deletes the temporary file.
// Throws Error although the new file exists if only the sync of the folder fails. If the folder cannot be
// read, or the file system cannot sync folders, a power cut may restore the old file.
//
// Follows symbolic links, and writes directly to a pipe or a device. If the process is killed, the complete
// old or the complete new file exists. A temporary file may remain, which later runs ignore. If several
// processes write the same file, the last process determines the content of the file.
void write_file_atomically(const std::string& path, std::string_view text);

// Throws the Error of write_file_atomically() if the file cannot be created or opened.
void require_writable(const std::string& path);

// Follows symbolic links and returns whether the file exists. Throws Error if the path cannot be checked.
bool file_exists(const std::string& path);

}  // namespace tally
