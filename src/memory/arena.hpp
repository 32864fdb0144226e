// An `Arena` allocates pieces of an address range by best fit, and joins adjacent gaps (free pieces).
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tally::memory {

// give() does not allocate memory, because each allocated piece keeps the map nodes of its former gap.
class Arena {
public:
    explicit Arena(std::size_t bytes) : free_(bytes) {
        if (bytes > 0) add(0, bytes);
    }

    // Takes the front of the smallest sufficient gap, or of the first of equal gaps. `bytes` must not be 0.
    std::optional<std::size_t> take(std::size_t bytes) {
        const auto best = by_size_.lower_bound({bytes, 0});
        if (best == by_size_.end()) return std::nullopt;
        const auto [size, offset] = *best;
        if (size > bytes) add(offset + bytes, size - bytes);  // before other changes, because add() may throw
        pieces_.find(offset)->second = bytes;
        file(by_size_.extract(best), {taken, offset});
        free_ -= bytes;
        return offset;
    }

    // Frees a whole piece that take() returned.
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
    static constexpr std::size_t taken = 0;                       // a gap never has 0 bytes

    void add(std::size_t offset, std::size_t bytes) {  // changes nothing if it throws
        Sizes size{{bytes, offset}};
        pieces_.emplace(offset, bytes);
        by_size_.merge(size);
    }
    void file(Sizes::node_type node, Sizes::value_type as) {
        node.value() = as;
        by_size_.insert(std::move(node));
    }
    bool unfile(Pieces::iterator piece) {  // returns false if the piece is not a gap
        return by_size_.erase({piece->second, piece->first}) == 1;
    }

    Pieces pieces_;
    Sizes by_size_;
    std::size_t free_;
};

}  // namespace tally::memory
