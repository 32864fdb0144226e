// A small device's address space: best fit, neighbours coalesced, so that fragmentation is
// real. Offsets only.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tally::memory {

class Arena {
public:
    explicit Arena(std::size_t bytes) {
        if (bytes > 0) add(0, bytes);
    }

    // The smallest gap that suffices, the lowest of equals; cut from its front.
    std::optional<std::size_t> take(std::size_t bytes) {
        const auto best = by_size_.lower_bound({bytes, 0});
        if (best == by_size_.end()) return std::nullopt;
        const auto [size, offset] = *best;
        remove(by_offset_.find(offset));
        if (size > bytes) add(offset + bytes, size - bytes);
        return offset;
    }

    void give(std::size_t offset, std::size_t bytes) {
        const auto after = by_offset_.lower_bound(offset);
        if (after != by_offset_.begin()) {
            const auto before = std::prev(after);
            if (before->first + before->second == offset) {
                offset = before->first;
                bytes += before->second;
                remove(before);
            }
        }
        if (after != by_offset_.end() && offset + bytes == after->first) {
            bytes += after->second;
            remove(after);
        }
        add(offset, bytes);
    }

    std::size_t free_bytes() const { return free_; }
    std::size_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
    std::size_t gaps() const { return by_offset_.size(); }

private:
    using Gap = std::map<std::size_t, std::size_t>::iterator;

    void add(std::size_t offset, std::size_t bytes) {
        by_offset_.emplace(offset, bytes);
        by_size_.emplace(bytes, offset);
        free_ += bytes;
    }
    void remove(Gap gap) {
        by_size_.erase({gap->second, gap->first});
        free_ -= gap->second;
        by_offset_.erase(gap);
    }

    std::map<std::size_t, std::size_t> by_offset_;           // offset → bytes
    std::set<std::pair<std::size_t, std::size_t>> by_size_;  // (bytes, offset)
    std::size_t free_ = 0;
};

}  // namespace tally::memory
