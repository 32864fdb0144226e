// AccumulationSteps is the number of micro-batches per update, which may change with the epoch.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

namespace tally::detail {

// Maps an epoch to the number of micro-batches per update: 4, or {{0, 8}, {4, 2}} for 8 from the start and 2
// from epoch 4 on. Epochs before the first given one have 1.
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
