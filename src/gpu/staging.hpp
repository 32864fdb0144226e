// The class Staging copies data to pinned memory before an upload, so that host and device need not wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tally/base/alignment.hpp"

namespace tally::gpu {

struct StagingRing {
    static constexpr std::size_t parts = 4, part_bytes = std::size_t{4} << 20;
};

// The class `Link` has these functions:
//  - pinned(bytes) returns memory that the device can read;
//  - send(to, from, bytes) queues the copy from this memory to the device;
//  - mark(part) records the position of the queue, and await(part) waits until the queue has reached it.
template <class Link> class Staging : StagingRing {
public:
    explicit Staging(Link link)
        : link_(link), memory_(static_cast<std::byte*>(link.pinned(parts * part_bytes))) {}

    void upload(void* to, const void* from, std::size_t bytes) {
        auto* target = static_cast<std::byte*>(to);
        auto* source = static_cast<const std::byte*>(from);
        while (bytes > 0) {
            if (used_ == part_bytes) next_part();
            const std::size_t count = std::min(bytes, part_bytes - used_);
            std::byte* const place = memory_ + part_ * part_bytes + used_;
            std::memcpy(place, source, count);
            link_.send(target, place, count);
            used_ += memory::round_up_to_line(count);
            target += count;
            source += count;
            bytes -= count;
        }
    }

private:
    void next_part() {
        link_.mark(part_);
        marked_[part_] = true;
        part_ = (part_ + 1) % parts;
        used_ = 0;
        if (marked_[part_]) link_.await(part_);  // until the previous copies from this part are complete
    }

    Link link_;
    std::byte* memory_;
    std::size_t part_ = 0, used_ = 0;
    bool marked_[parts] = {};
};

}  // namespace tally::gpu
