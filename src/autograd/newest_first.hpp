// Nodes that wait for their turn, the newest first. Nearly always a handful, kept sorted; what is older than all
// of these spills into a heap.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "tally/autograd/node.hpp"

namespace tally {

class NewestFirst {
public:
    bool empty() const { return near_count_ == 0 && heap_.empty(); }
    [[gnu::always_inline]] void add(Node* node) {
        if (near_count_ == 0 ? heap_.empty()
                             : near_count_ < near_size && near_[near_count_ - 1]->id < node->id) [[likely]]
            near_[near_count_++] = node;
        else
            add_below(node);
    }
    Node* take() { return near_count_ ? near_[--near_count_] : take_from_heap(); }  // when it is not empty

private:
    void add_below(Node* node);
    void spill(Node* node);
    [[gnu::cold]] Node* take_from_heap();

    static constexpr std::size_t near_size = 32;
    std::array<Node*, near_size> near_;  // oldest first; `near_count_` of them
    std::size_t near_count_ = 0;
    std::vector<Node*> heap_;
};

}  // namespace tally
