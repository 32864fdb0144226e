// Implements AccumulationSteps: checks the steps, and looks up the steps of an epoch.
#include "tally/train/accumulation_steps.hpp"

#include <utility>

#include "tally/base/error.hpp"

namespace tally {

detail::AccumulationSteps::AccumulationSteps(std::map<std::int64_t, std::int64_t> from_epoch)
    : from_epoch_(std::move(from_epoch)) {
    if (from_epoch_.empty())
        throw Error(
            "[accumulate] no steps are given; write 4, or {{0, 8}, {4, 2}} for 8 and from epoch 4 on 2");
    for (const auto& [epoch, steps] : from_epoch_) {
        if (epoch < 0)
            throw Error("[accumulate] epochs are numbered from 0; " + std::to_string(epoch) + " is not one");
        if (steps < 1)
            throw Error("[accumulate] an update needs at least one micro-batch; from epoch " +
                        std::to_string(epoch) + " on " + std::to_string(steps) + " are asked for");
    }
}

std::int64_t detail::AccumulationSteps::at(std::int64_t epoch) const {
    const auto later = from_epoch_.upper_bound(epoch);
    return later == from_epoch_.begin() ? 1 : std::prev(later)->second;
}

std::string detail::AccumulationSteps::to_text() const {
    if (from_epoch_.size() == 1 && from_epoch_.begin()->first == 0)
        return std::to_string(from_epoch_.begin()->second);
    std::string all;
    for (const auto& [epoch, steps] : from_epoch_)
        all += (all.empty() ? "{" : ", {") + std::to_string(epoch) + ", " + std::to_string(steps) + "}";
    return "{" + all + "}";
}

}  // namespace tally
