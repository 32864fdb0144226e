// IDX files, in which MNIST and its successors come: unsigned bytes in one, two or three axes, plain or
// packed by gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tally/array/shape.hpp"

namespace tally {

// What an IDX file holds: bytes, with a shape.
struct Idx {
    Shape shape;
    std::vector<std::uint8_t> values;  // row-major
};

// What is wrong with a file is an Error that names it and the byte; no more memory is taken than there are
// bytes to fill it.
Idx load_idx(const std::string& path);

namespace detail {
// The same from memory; `name` stands for the file in errors.
Idx parse_idx(std::span<const std::byte> file, const std::string& name);
}  // namespace detail

}  // namespace tally
