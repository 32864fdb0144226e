// An `AccumulationSteps` stores the number of micro-batches per update, which may differ between epochs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace tally::detail {

// The value 4 means 4 in every epoch, and {{0, 8}, {4, 2}} means 8 in epochs 0 to 3 and 2 later. Epochs
// before the first given epoch use the value 1.
class AccumulationSteps {
public:
    AccumulationSteps(std::int64_t steps)
        : AccumulationSteps(std::map<std::int64_t, std::int64_t>{{0, steps}}) {}
    AccumulationSteps(std::initializer_list<std::pair<const std::int64_t, std::int64_t>> from_epoch)
        : AccumulationSteps(std::map<std::int64_t, std::int64_t>(from_epoch)) {}
    explicit AccumulationSteps(std::map<std::int64_t, std::int64_t> from_epoch);

    std::int64_t at(std::int64_t epoch) const;
    std::string to_text() const;  // the steps as source text, such as "4" or "{{0, 8}, {4, 2}}"

private:
    std::map<std::int64_t, std::int64_t> from_epoch_;
};

}  // namespace tally::detail
