// The queue `NewestFirst` returns the entry with the largest member `id` first. A sorted array stores at
// most 32 entries with the largest ids, and a heap stores all other entries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tally::detail {

// A `NewestHeap` is a heap of entries of any type. pop() returns the entry with the largest id.
class NewestHeap {
public:
    bool empty() const { return things_.empty(); }
    std::uint64_t newest() const { return things_.front().id; }
    void push(std::uint64_t id, void* thing);
    void* pop();  // the newest

private:
    struct Aged {
        std::uint64_t id;
        void* thing;
    };
    static bool older(const Aged& a, const Aged& b) { return a.id < b.id; }

    std::vector<Aged> things_;
};

template <class Thing> class NewestFirst {
public:
    bool empty() const { return near_count_ == 0 && heap_.empty(); }
    [[gnu::always_inline]] void push(Thing* thing) {
        if (near_count_ == 0 ? heap_.empty()
                             : near_count_ < near_size && near_[near_count_ - 1]->id < thing->id) [[likely]]
            near_[near_count_++] = thing;
        else
            push_below(thing);
    }
    // The queue must not be empty.
    Thing* pop() { return near_count_ ? near_[--near_count_] : static_cast<Thing*>(heap_.pop()); }

private:
    // Inserts an entry that cannot be appended at the end of the sorted entries.
    [[gnu::noinline]] void push_below(Thing* thing) {
        if (near_count_ == near_size || (!heap_.empty() && (near_count_ == 0 || thing->id < near_[0]->id)))
            return spill(thing);
        std::size_t place = near_count_++;
        for (; place > 0 && thing->id < near_[place - 1]->id; --place) near_[place] = near_[place - 1];
        near_[place] = thing;
    }
    void spill(Thing* thing) try {
        if (near_count_ < near_size || thing->id <= near_[0]->id) return heap_.push(thing->id, thing);
        heap_.push(near_[0]->id, near_[0]);  // the oldest of the sorted entries
        --near_count_;
        for (std::size_t i = 0; i < near_count_; ++i) near_[i] = near_[i + 1];
        push(thing);
    } catch (...) {  // out of memory: keep the entry, so that an aborted backward pass releases it
        near_[near_count_++] = thing;
        throw;
    }

    static constexpr std::size_t near_size = 32;
    std::array<Thing*, near_size + 1> near_;  // oldest first; one spare place for spill()
    std::size_t near_count_ = 0;
    NewestHeap heap_;
};

}  // namespace tally::detail
