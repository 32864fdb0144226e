// What is given, added and spread, one after the other.
#include "tally/processes/ordered_sum.hpp"

#include <algorithm>
#include <cstdint>

namespace tally::detail {

template <class S> OrderedSum<S>::OrderedSum(Wire& wire, Sent& sent, std::span<S> numbers, std::span<S> sums,
                                             std::span<S> scratch, int channel)
    : wire_(wire), sent_(sent), numbers_(numbers), sums_(sums), scratch_(scratch), channel_(channel) {
    give();
}

template <class S> std::span<S> OrderedSum<S>::share(std::span<S> of, int rank) const {
    const auto ranks = static_cast<std::size_t>(wire_.size());
    const auto begin = [&](std::size_t share) {
        return share * (of.size() / ranks) + std::min(share, of.size() % ranks);
    };
    const auto which = static_cast<std::size_t>(rank);
    return of.subspan(begin(which), begin(which + 1) - begin(which));
}

template <class S> void OrderedSum<S>::move(const Pieces& to, const Pieces& from, int channel) {
    for (const Piece& piece : to)
        if (piece.bytes > 0) ++sent_.messages, sent_.numbers += piece.bytes;
    transfer_ = wire_.begin(to, from, channel);
}

template <class S> void OrderedSum<S>::give() {
    const std::size_t mine = share(numbers_, wire_.rank()).size();
    Pieces to, from;
    for (int other = 0; other < wire_.size(); ++other) {
        if (other == wire_.rank()) continue;
        const std::span<S> theirs = share(numbers_, other);
        from.push_back({other, scratch_.data() + from.size() * mine, mine * sizeof(S)});
        to.push_back({other, theirs.data(), theirs.size_bytes()});
    }
    move(to, from, channel_);
}

template <class S> void OrderedSum<S>::add() {
    const std::span<S> mine = share(numbers_, wire_.rank()), sums = share(sums_, wire_.rank());
    std::vector<const S*> from;
    for (int rank = 0, next = 0; rank < wire_.size(); ++rank)
        from.push_back(rank == wire_.rank()
                           ? mine.data()
                           : scratch_.data() + static_cast<std::size_t>(next++) * mine.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
        S sum = from[0][i];
        for (std::size_t rank = 1; rank < from.size(); ++rank) sum += from[rank][i];
        sums[i] = sum;
    }
}

template <class S> void OrderedSum<S>::spread() {
    const std::span<S> mine = share(sums_, wire_.rank());
    Pieces to, from;
    for (int other = 0; other < wire_.size(); ++other) {
        if (other == wire_.rank()) continue;
        const std::span<S> theirs = share(sums_, other);
        to.push_back({other, mine.data(), mine.size_bytes()});
        from.push_back({other, theirs.data(), theirs.size_bytes()});
    }
    spreading_ = true;
    move(to, from, channel_ + 1);
}

template <class S> bool OrderedSum<S>::done() {
    if (!transfer_->over()) return false;
    if (spreading_) return true;
    add();
    spread();
    return transfer_->over();
}

template class OrderedSum<float>;
template class OrderedSum<double>;
template class OrderedSum<std::int64_t>;

}  // namespace tally::detail
