// OrderedSum: a sum over all ranks, in their order, that goes on while something else is done.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "tally/processes/processes.hpp"
#include "tally/processes/wire.hpp"

namespace tally::detail {

// Everybody sums a share of the numbers, and then gives it to all others: together they send each number
// 2 (P - 1) times.
template <class S> class OrderedSum {
public:
    // `sums` may be the numbers themselves; `scratch` has as many, and one more for each rank. All of them stay
    // where they are until it is done. On one channel all ranks begin the same sums in the same order.
    OrderedSum(Wire& wire, Sent& sent, std::span<S> numbers, std::span<S> sums, std::span<S> scratch,
               int channel);

    // Goes on as far as it can without waiting. Later sums of its channel are asked when this one is spreading.
    bool done();
    bool spreading() const { return spreading_; }

private:
    using Pieces = std::vector<Piece>;
    std::span<S> share(std::span<S> of, int rank) const;
    void move(const Pieces& to, const Pieces& from, int channel);
    void give();
    void add();
    void spread();

    Wire& wire_;
    Sent& sent_;
    std::span<S> numbers_, sums_, scratch_;
    int channel_;
    std::unique_ptr<Transfer> transfer_;
    bool spreading_ = false;
};

}  // namespace tally::detail
