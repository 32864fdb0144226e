// Where a node is not simply the newest of the near ones.
#include "tally/autograd/newest_first.hpp"

#include <algorithm>

namespace tally {

namespace {
constexpr auto older = [](const Node* a, const Node* b) { return a->id < b->id; };
}  // namespace

// Where it is not simply the last of the near ones: older than that one, no room, or something in the heap.
void NewestFirst::add_below(Node* node) {
    if (near_count_ == near_size || (!heap_.empty() && (near_count_ == 0 || node->id < near_[0]->id)))
        return spill(node);
    std::size_t place = near_count_++;
    for (; place > 0 && node->id < near_[place - 1]->id; --place) near_[place] = near_[place - 1];
    near_[place] = node;
}

void NewestFirst::spill(Node* node) {
    const auto push = [this](Node* older_than_near) {
        heap_.push_back(older_than_near);
        std::push_heap(heap_.begin(), heap_.end(), older);
    };
    if (near_count_ == near_size && older(near_[0], node)) {  // makes room: the oldest will be needed last
        push(near_[0]);
        std::copy(near_.begin() + 1, near_.end(), near_.begin());
        --near_count_;
        add(node);
    } else {
        push(node);
    }
}

Node* NewestFirst::take_from_heap() {
    std::pop_heap(heap_.begin(), heap_.end(), older);
    Node* node = heap_.back();
    heap_.pop_back();
    return node;
}

}  // namespace tally
