// Defines the alignment of buffers and the allocation functions of a device.
#pragma once

#include <atomic>
#include <cstddef>

namespace tally::memory {

// `line` is the size in bytes of a cache line and of the widest register. Buffers are aligned to lines and
// consist of whole lines, because kernels read to the end of a line.
inline constexpr std::size_t line = 64;
static_assert((line & (line - 1)) == 0, "a line is a power of two");

constexpr std::size_t round_up_to_line(std::size_t bytes) { return (bytes + line - 1) & ~(line - 1); }

// Counts the bytes of packing buffers. Each thread that computes large products on the CPU has one buffer.
inline constinit std::atomic<std::size_t> packing_buffer_bytes{0};

// Holds the allocation functions of a device.
struct Raw {
    void* (*allocate)(std::size_t bytes);  // aligned to a line; null if memory runs out
    void (*free)(void* data, std::size_t bytes);
    void (*fill)(void* data, unsigned char byte, std::size_t bytes);
};

}  // namespace tally::memory
