// How many micro-batches make an update: a number that may change with the epoch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace tally {

// How many micro-batches make an update, by epoch: 4, or {{0, 8}, {4, 2}} for 8 from the start and 2 from
// epoch 4 on (1 before the first epoch that is named).
class AccumulationSteps {
public:
    AccumulationSteps(std::int64_t steps)
        : AccumulationSteps(std::map<std::int64_t, std::int64_t>{{0, steps}}) {}
    AccumulationSteps(std::initializer_list<std::pair<const std::int64_t, std::int64_t>> from_epoch)
        : AccumulationSteps(std::map<std::int64_t, std::int64_t>(from_epoch)) {}
    explicit AccumulationSteps(std::map<std::int64_t, std::int64_t> from_epoch);

    std::int64_t at(std::int64_t epoch) const;
    std::string in_words() const;  // as it is written

private:
    std::map<std::int64_t, std::int64_t> from_epoch_;
};

}  // namespace tally
