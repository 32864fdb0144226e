// SharedSums: what processes tell each other of their exact sums, so that digits of all can be added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tally/array/exact_sum.hpp"

namespace tally::detail {

// A window's sums, of which the last two, losses and counts, are single numbers: those are told whole.
template <class S> class SharedSums {
public:
    using Sums = std::span<ExactSum<S>>;

    std::string serialize(Sums mine,
                          std::size_t ranks);  // to all, this process too; what was heard is forgotten
    void merge(std::string_view said);         // of each of them
    double loss() const { return static_cast<double>(totals_[0].rounded().item()); }
    double counted() const { return static_cast<double>(totals_[1].rounded().item()); }

    // Gives this process's sums the digits that those of all have, and says how many these are.
    std::size_t widen(Sums mine) const;
    // When digits have been added up.
    void count_additions(Sums mine) const;

private:
    // Which digits a sum has, and how much has been added to it.
    struct SumRange {
        ExactRange range;
        std::int64_t additions = 0;
    };

    std::vector<SumRange> reaches_;    // of all together
    std::vector<ExactSum<S>> totals_;  // losses and counts of all
};

}  // namespace tally::detail
