// Defines the alignment of buffers and the allocation functions of a device.
#pragma once

#include <atomic>
#include <cstddef>

namespace tally::memory {

// `line` is the size in bytes of a cache line and of the widest vector register. Buffers begin at a cache
// line and are padded to whole lines, because a kernel may read to the end of the last line.
inline constexpr std::size_t line = 64;
static_assert((line & (line - 1)) == 0, "a line is a power of two");

constexpr std::size_t round_up_to_line(std::size_t bytes) { return (bytes + line - 1) & ~(line - 1); }

// The total size of all packing buffers. Each thread that multiplies large matrices on the CPU has one.
inline constinit std::atomic<std::size_t> packing_buffer_bytes{0};

struct Raw {
    void* (*allocate)(std::size_t bytes);  // aligned to a line; null if memory runs out
    void (*free)(void* data, std::size_t bytes);
    void (*fill)(void* data, unsigned char byte, std::size_t bytes);
};

}  // namespace tally::memory
