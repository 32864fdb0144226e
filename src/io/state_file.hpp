// Training states as files: versioned, with a checksum, there whole or not at all.
//
//     bytes 0-7        the magic word "tally\r\n\0"
//     8-11             the version, 1
//     12-15            0
//     16-23            the length of the whole file
//     entries          in the order of their names: the length of the name (4 bytes), the name, a byte for
//     the kind
//                        1  int64        8 bytes
//                        2  double       8 bytes
//                        3  string       its length (8 bytes), its bytes
//                        4  float array, 5  double array: the number of axes (1 byte), the extents (4 bytes
//                        each),
//                           the numbers, row-major
//     the last 8       CRC-64 of all before
//
// All numbers are little-endian.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tally/io/training_state.hpp"

namespace tally {

// Arrays on a GPU are written as they would be on the CPU.
void save_state(const std::string& path, const TrainingState& state);
// What is wrong with a file is an Error that names it and the byte.
TrainingState load_state(const std::string& path);

namespace detail {
// The same in memory; `name` stands for the file in errors.
std::string state_bytes(const TrainingState& state);
TrainingState parse_state(std::span<const std::byte> file, const std::string& name);
}  // namespace detail

}  // namespace tally
