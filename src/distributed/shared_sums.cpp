// SharedSums writes the ranges of a process's exact sums into a message, and merges all messages.
#include "tally/distributed/shared_sums.hpp"

#include <cstring>

namespace tally::detail {

// Carries each sum that has more than most_additions / ranks additions, so that the sum of all processes' digits
// does not overflow.
template <class S> std::string SharedSums<S>::serialize(Sums mine, std::size_t ranks) {
    const std::int64_t share = detail::ExactSum<S>::most_additions / static_cast<std::int64_t>(ranks);
    std::string message;
    const auto append = [&](const void* bytes, std::size_t size) {
        message.append(static_cast<const char*>(bytes), size);
    };
    for (std::size_t i = 0; i < mine.size(); ++i) {
        if (mine[i].additions() > share) mine[i].carry();
        const SumRange range{mine[i].range(), mine[i].additions()};
        append(&range, sizeof(SumRange));
        if (i + 2 >= mine.size()) append(mine[i].words().data(), mine[i].words().size_bytes());
    }
    ranges_.assign(mine.size(), {});
    totals_.clear();
    for (std::size_t i = 0; i < 2; ++i) totals_.emplace_back(Shape{});
    return message;
}

template <class S> void SharedSums<S>::merge(std::string_view message) {
    const auto take = [&](void* to, std::size_t size) {
        if (size) std::memcpy(to, message.data(), size);
        message.remove_prefix(size);
    };
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
        SumRange theirs;
        take(&theirs, sizeof(SumRange));
        ranges_[i].range = ranges_[i].range.united_with(theirs.range);
        ranges_[i].additions += theirs.additions;
        if (i + 2 < ranges_.size()) continue;
        detail::ExactSum<S> sum{Shape{}};
        sum.widen(theirs.range);
        take(sum.words().data(), sum.words().size_bytes());
        sum.set_additions(theirs.additions);
        totals_[i + 2 - ranges_.size()].merge(sum);
    }
}

// An empty sum is filled with digits of 0, which do not change the result.
template <class S> std::size_t SharedSums<S>::widen(Sums mine) const {
    std::size_t digits = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        mine[i].widen(ranges_[i].range);
        digits += mine[i].words().size();
    }
    return digits;
}

template <class S> void SharedSums<S>::set_additions(Sums mine) const {
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i].set_additions(ranges_[i].additions);
}

template class SharedSums<float>;
template class SharedSums<double>;

}  // namespace tally::detail
