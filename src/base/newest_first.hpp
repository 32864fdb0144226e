// Things that wait for their turn, the newest first. Nearly always a handful, kept sorted; what is older than all
// of these spills into a heap.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace tally::detail {

// The newer of two has the larger `id`.
template <class Thing> class NewestFirst {
public:
    bool empty() const { return near_count_ == 0 && heap_.empty(); }
    [[gnu::always_inline]] void add(Thing* thing) {
        if (near_count_ == 0 ? heap_.empty()
                             : near_count_ < near_size && near_[near_count_ - 1]->id < thing->id) [[likely]]
            near_[near_count_++] = thing;
        else
            add_below(thing);
    }
    Thing* take() { return near_count_ ? near_[--near_count_] : take_from_heap(); }  // when it is not empty

private:
    // Where it is not simply the last of the near ones: older than that one, no room, or something in the heap.
    [[gnu::noinline]] void add_below(Thing* thing) {
        if (near_count_ == near_size || (!heap_.empty() && (near_count_ == 0 || thing->id < near_[0]->id)))
            return spill(thing);
        std::size_t place = near_count_++;
        for (; place > 0 && thing->id < near_[place - 1]->id; --place) near_[place] = near_[place - 1];
        near_[place] = thing;
    }
    void spill(Thing* thing) {
        const auto push = [this](Thing* older_than_near) {
            heap_.push_back(older_than_near);
            std::push_heap(heap_.begin(), heap_.end(), older);
        };
        if (near_count_ == near_size &&
            older(near_[0], thing)) {  // makes room: the oldest will be needed last
            push(near_[0]);
            std::copy(near_.begin() + 1, near_.end(), near_.begin());
            --near_count_;
            add(thing);
        } else {
            push(thing);
        }
    }
    [[gnu::cold, gnu::noinline]] Thing* take_from_heap() {
        std::pop_heap(heap_.begin(), heap_.end(), older);
        Thing* thing = heap_.back();
        heap_.pop_back();
        return thing;
    }
    static bool older(const Thing* a, const Thing* b) { return a->id < b->id; }

    static constexpr std::size_t near_size = 32;
    std::array<Thing*, near_size> near_;  // oldest first; `near_count_` of them
    std::size_t near_count_ = 0;
    std::vector<Thing*> heap_;
};

}  // namespace tally::detail
