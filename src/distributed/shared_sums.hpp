// A `SharedSums` writes the digit ranges of exact sums into a message, and merges all messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tally/array/exact_sum.hpp"

namespace tally::detail {

// `Sums` contains one sum per parameter, then the sum of the losses and the sum of the counts. The message
// also contains the digits of the last two sums, which are short and are needed before reduce().
template <class S> class SharedSums {
public:
    using Sums = std::span<ExactSum<S>>;

    // Returns this process's message to all processes, and discards all merged messages.
    std::string serialize(Sums mine, std::size_t ranks);
    void merge(std::string_view message);  // merges a message, also that of this process
    double loss() const { return static_cast<double>(totals_[0].rounded().item()); }
    double count() const { return static_cast<double>(totals_[1].rounded().item()); }

    // Extends this process's sums to the ranges of all processes, and returns the number of words.
    std::size_t widen(Sums mine) const;
    // Sets each sum's number of additions after the digits of all processes have been added.
    void set_additions(Sums mine) const;

private:
    // Describes the range of a sum's digits, and the number of additions to the sum.
    struct SumRange {
        ExactRange range;
        std::int64_t additions = 0;
    };

    std::vector<SumRange> ranges_;     // of all processes together
    std::vector<ExactSum<S>> totals_;  // losses and counts of all processes
};

}  // namespace tally::detail
