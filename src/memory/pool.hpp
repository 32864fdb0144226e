// Allocates small objects of the host from a pool. Each thread has one free list per object size.
#pragma once

#include <cstddef>
#include <new>

#include "tally/base/sanitizer.hpp"

namespace tally::pool {

inline constexpr std::size_t granule = 16;    // the alignment; sizes are rounded up to multiples of it
inline constexpr std::size_t largest = 1024;  // larger objects use operator new and delete
inline constexpr std::size_t list_count = largest / granule;
// AddressSanitizer detects a use after free only in memory that is really freed, and not in memory of a pool.
inline constexpr bool enabled = !TALLY_ASAN;

namespace detail {
struct Block {
    Block* next;
};

// `Lists` is initialised at compile time and has no destructor, so that a thread may always use its lists.
struct Lists {
    Block* head[list_count];
    bool open;  // a guard will free the lists when the thread ends
};
inline thread_local constinit Lists lists{};

void free_slow(void* memory, std::size_t list) noexcept;  // opens the lists, unless the thread is ending
}  // namespace detail

[[gnu::always_inline]] inline void* take(std::size_t bytes) {
    const std::size_t list = (bytes - 1) / granule;  // 0 bytes wrap around and use operator new, too
    if (!enabled || list >= list_count) return ::operator new(bytes);
    detail::Block* block = detail::lists.head[list];
    if (block == nullptr) [[unlikely]] {
        return ::operator new((list + 1) * granule);
    }
    detail::lists.head[list] = block->next;
    return block;
}

// Any thread may call give(), and then has the block in its list. `bytes` must be the size passed to take().
inline void give(void* memory, std::size_t bytes) noexcept {
    const std::size_t list = (bytes - 1) / granule;
    if (!enabled || list >= list_count) return ::operator delete(memory);
    if (!detail::lists.open) [[unlikely]] {
        return detail::free_slow(memory, list);
    }
    detail::lists.head[list] = ::new (memory) detail::Block{detail::lists.head[list]};
}

void drop() noexcept;  // frees the blocks in this thread's lists

}  // namespace tally::pool
