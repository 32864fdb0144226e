// The life of a thread's free lists: opened by the first block given back, freed when the thread ends.
#include "tally/memory/pool.hpp"

namespace tally::pool {
namespace {

thread_local constinit bool ended = false;  // outlives the guard, which has a destructor

struct Guard {
    ~Guard() {
        ended = true;
        detail::lists.open = false;
        drop();
    }
};

}  // namespace

void detail::free_slow(void* memory, std::size_t list) noexcept {
    if (ended) return ::operator delete(memory);  // from an object destroyed later than the guard
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
