// write_file_atomically: a file appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace tally {

// Writes beside `path` under a temporary name, syncs, renames. Throws Error with the path and the reason, and
// then leaves neither a temporary nor a changed file. What is no regular file (a pipe, a device) is written
// to directly. A process that is killed on the way leaves the old file or the new one, whole, and perhaps a
// temporary, PATH.tmp-..., which may be deleted.
void write_file_atomically(const std::string& path, std::string_view text);

// For tests: called where a process may die on the way.
enum class WriteStage { writing, before_sync, before_rename, after_rename };
inline void (*at_write_stage)(WriteStage) = nullptr;

}  // namespace tally
