// Implements the heap of NewestFirst. Many files include newest_first.hpp, which therefore stays small.
#include "tally/base/newest_first.hpp"

#include <algorithm>

namespace tally::detail {

void NewestHeap::push(std::uint64_t id, void* thing) {
    things_.push_back({id, thing});
    std::push_heap(things_.begin(), things_.end(), older);
}

[[gnu::cold]] void* NewestHeap::pop() {
    std::pop_heap(things_.begin(), things_.end(), older);
    void* const thing = things_.back().thing;
    things_.pop_back();
    return thing;
}

}  // namespace tally::detail
