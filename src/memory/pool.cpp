// Opens a thread's free lists when it first frees a block. A guard frees the blocks when the thread ends.
#include "tally/memory/pool.hpp"

namespace tally::pool {
namespace {

thread_local constinit bool ended = false;  // outlives the guard, because it has no destructor

struct Guard {
    ~Guard() {
        ended = true;
        detail::lists.open = false;
        drop();
    }
};

}  // namespace

void detail::free_slow(void* memory, std::size_t list) noexcept {
    if (ended) return ::operator delete(memory);  // the guard of this thread is already destroyed
    static thread_local Guard guard;
    lists.open = true;
    lists.head[list] = ::new (memory) Block{lists.head[list]};
}

void drop() noexcept {
    for (detail::Block*& head : detail::lists.head) {
        while (head != nullptr) {
            detail::Block* next = head->next;
            ::operator delete(head);
            head = next;
        }
    }
}

}  // namespace tally::pool
