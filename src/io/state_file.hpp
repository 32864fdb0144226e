// save_state() and load_state() store a TrainingState in a file with a version and a checksum.
//
//     bytes 0-7        the magic word "tally\r\n\0"
//     8-11             the version, 1
//     12-15            0
//     16-23            the length of the whole file
//     entries          in the order of their names: length of the name (4 bytes), name, kind (1 byte), value
//                        1  int64        8 bytes
//                        2  double       8 bytes
//                        3  string       its length (8 bytes), its bytes
//                        4  float array, 5  double array: number of axes (1 byte), extents (4 bytes each),
//                                                         the numbers, row-major
//     the last 8       CRC-64 of all bytes before
//
// All numbers are little-endian.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tally/io/training_state.hpp"

namespace tally {

// Writes the file completely or not at all. Arrays on a GPU are written like arrays on the CPU.
void save_state(const std::string& path, const TrainingState& state);
// Throws an Error that names the file and the byte if the file is invalid.
TrainingState load_state(const std::string& path);

namespace detail {
// Do the same in memory. Errors call the file `name`.
std::string state_bytes(const TrainingState& state);
TrainingState parse_state(std::span<const std::byte> file, const std::string& name);
}  // namespace detail

}  // namespace tally
