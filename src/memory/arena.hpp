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

// A piece that is taken keeps the nodes of the gap that it was and will be: giving it back needs no memory.
class Arena {
public:
    explicit Arena(std::size_t bytes) : free_(bytes) {
        if (bytes > 0) add(0, bytes);
    }

    // The smallest gap that suffices, the lowest of equals; cut from its front. `bytes` is not 0.
    std::optional<std::size_t> take(std::size_t bytes) {
        const auto best = by_size_.lower_bound({bytes, 0});
        if (best == by_size_.end()) return std::nullopt;
        const auto [size, offset] = *best;
        if (size > bytes) add(offset + bytes, size - bytes);  // first: the host may have no memory for it
        pieces_.find(offset)->second = bytes;
        file(by_size_.extract(best), {taken, offset});
        free_ -= bytes;
        return offset;
    }

    // What was taken, all of it.
    void give(std::size_t offset, std::size_t bytes) noexcept {
        Sizes::node_type node = by_size_.extract({taken, offset});
        auto first = pieces_.find(offset), last = std::next(first);
        free_ += bytes;
        if (last != pieces_.end() && unfile(last)) bytes += (last++)->second;
        if (first != pieces_.begin() && unfile(std::prev(first))) bytes += (--first)->second;
        pieces_.erase(std::next(first), last);
        first->second = bytes;
        file(std::move(node), {bytes, first->first});
    }

    std::size_t free_bytes() const { return free_; }
    std::size_t largest() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

private:
    using Pieces = std::map<std::size_t, std::size_t>;            // offset → bytes
    using Sizes = std::set<std::pair<std::size_t, std::size_t>>;  // (bytes of a gap, or `taken`, offset)
    static constexpr std::size_t taken = 0;                       // less than any gap has

    void add(std::size_t offset, std::size_t bytes) {  // both or none
        Sizes size{{bytes, offset}};
        pieces_.emplace(offset, bytes);
        by_size_.merge(size);
    }
    void file(Sizes::node_type node, Sizes::value_type as) {
        node.value() = as;
        by_size_.insert(std::move(node));
    }
    bool unfile(Pieces::iterator piece) {  // if it is a gap
        return by_size_.erase({piece->second, piece->first}) == 1;
    }

    Pieces pieces_;
    Sizes by_size_;
    std::size_t free_;
};

}  // namespace tally::memory
