// How raw memory of a device is had, and how sizes are rounded.
#pragma once

#include <atomic>
#include <cstddef>

namespace tally::memory {

// Buffers are whole lines, aligned: as wide as a cache line, and as the widest register. Kernels count on it, and
// read to the end of a line.
inline constexpr std::size_t line = 64;
static_assert((line & (line - 1)) == 0, "a line is a power of two");

constexpr std::size_t round_up_to_line(std::size_t bytes) { return (bytes + line - 1) & ~(line - 1); }

// Bytes in which the CPU's kernels pack operands: a buffer for each thread that has computed a large product.
inline constinit std::atomic<std::size_t> packing_buffer_bytes{0};

struct Raw {
    void* (*allocate)(std::size_t bytes);  // a line's alignment; null when there is none
    void (*free)(void* data, std::size_t bytes);
    void (*fill)(void* data, unsigned char byte, std::size_t bytes);
};

}  // namespace tally::memory
