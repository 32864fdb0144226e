// Idx::load() reads IDX files (the format of MNIST), which may be compressed by gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tally/array/shape.hpp"

namespace tally {

struct Idx {
    Shape shape;
    std::vector<std::uint8_t> values;  // row-major

    // Reads a file of unsigned bytes with one, two or three axes. Throws an Error that names the file and the
    // byte if the file is invalid. Allocates memory only for data that the file contains.
    static Idx load(const std::string& path);
};

namespace detail {
// Parses an IDX file in memory. Error messages call the file `name`.
Idx parse_idx(std::span<const std::byte> file, const std::string& name);
}  // namespace detail

}  // namespace tally
