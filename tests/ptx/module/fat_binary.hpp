// Finds the PTX in the fat binary that nvcc puts into an object file.
#pragma once

#include <string>

namespace tally::ptx {

// Returns the PTX, or nothing if the fat binary has none. Throws Unreadable if it is damaged.
std::string ptx_of(const void* fat_binary);

}  // namespace tally::ptx
