// write_file_atomically: a file appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace tally {

// Writes beside `path` under a temporary name, syncs, renames, syncs the folder. Throws Error with the path
// and the reason, and then leaves neither a temporary nor a changed file; only if the folder alone could not
// be synced the new file is there, and the Error says so. (Where a folder may not be read, or a file system
// cannot sync one, a power cut may bring the old file back.) A link stays a link: the file it points to is
// written. What is no regular file (a pipe, a device) is written to directly. A process that is killed on the
// way leaves the old file or the new one, whole, and perhaps a temporary, PATH.tmp-NUMBER-NUMBER, which no
// later run reads or deletes. Processes that write one file at once each write it whole; one of them is last.
void write_file_atomically(const std::string& path, std::string_view text);

// An Error, the same as from writing, where that could not even begin.
void expect_writable(const std::string& path);

// Behind links. An Error where it cannot be told, as in a folder that may not be looked into.
bool file_exists(const std::string& path);

}  // namespace tally
