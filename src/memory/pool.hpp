// Host memory for small objects of one size, made and freed by the million: free lists per size and thread.
#pragma once

#include <cstddef>
#include <new>

#include "tally/base/sanitizer.hpp"

namespace tally::pool {

inline constexpr std::size_t granule = 16;    // sizes share a list in steps of this; also the alignment
inline constexpr std::size_t largest = 1024;  // more bytes than this go to operator new and delete
inline constexpr std::size_t list_count = largest / granule;
// AddressSanitizer sees a use after free only in memory that is really freed.
inline constexpr bool enabled = !TALLY_ASAN;

namespace detail {
struct Block {
    Block* next;
};

// Neither constructed nor destroyed at run time, so that it may be used at any moment of a thread's life.
struct Lists {
    Block* head[list_count];
    bool open;  // blocks may wait here: somebody will free them when the thread ends
};
inline thread_local constinit Lists lists{};

void free_slow(void* memory, std::size_t list) noexcept;  // opens them; frees when the thread is ending
}  // namespace detail

[[gnu::always_inline]] inline void* take(std::size_t bytes) {
    const std::size_t list = (bytes - 1) / granule;  // 0 bytes wrap around and go to operator new, too
    if (!enabled || list >= list_count) return ::operator new(bytes);
    detail::Block* block = detail::lists.head[list];
    if (block == nullptr) [[unlikely]] {
        return ::operator new((list + 1) * granule);
    }
    detail::lists.head[list] = block->next;
    return block;
}

// `bytes` is what was asked for. Any thread may give back; the block then waits in that thread's list.
inline void give(void* memory, std::size_t bytes) noexcept {
    const std::size_t list = (bytes - 1) / granule;
    if (!enabled || list >= list_count) return ::operator delete(memory);
    if (!detail::lists.open) [[unlikely]] {
        return detail::free_slow(memory, list);
    }
    detail::lists.head[list] = ::new (memory) detail::Block{detail::lists.head[list]};
}

void drop() noexcept;  // frees what waits in this thread's lists

}  // namespace tally::pool
