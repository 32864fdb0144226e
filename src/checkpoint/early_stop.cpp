// Which operations of a block are computed when it runs again: those that lead to what a rule reads, unless it is
// a result that was kept. Only time is spared: whatever else is computed would be let go.
#include <algorithm>

#include "tally/checkpoint/trace.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

std::size_t CheckpointTrace::made_by(const Node& node) const {
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), node.id);
    return found != ids_.end() && *found == node.id ? static_cast<std::size_t>(found - ids_.begin())
                                                    : place();
}

void CheckpointTrace::read_by_rule(const SavedInput& value, const OpInfo& operation) {
    if (value.address == operation.result) return reading_result_.push_back(place());
    for (std::size_t i = 0; i < operation.operands; ++i) {
        const OpInput operand = operation.operand(i);
        if (operand.value != value.address) continue;
        if (operand.node->id >= mark_) need(made_by(*operand.node));
        return;
    }
    need(place());  // what is made nowhere else
}

std::vector<std::optional<std::size_t>> CheckpointTrace::finish_recording(
    const std::vector<const Node*>& results, bool keeps) {
    std::vector<std::size_t> places;
    for (const Node* result : results) {
        places.push_back(made_by(*result));
        block_.results.push_back(origin(*result));
    }
    for (const std::size_t place : reading_result_)
        if (!keeps || std::find(places.begin(), places.end(), place) == places.end()) need(place);
    std::vector<std::optional<std::size_t>> kept;
    for (const std::size_t place : places) {
        const bool read = std::binary_search(reading_result_.begin(), reading_result_.end(), place);
        kept.push_back(read && place >= block_.needed ? std::optional(place) : std::nullopt);
    }
    return kept;
}

void CheckpointTrace::stop_computing_if_done() {
    if (block_.needed >= block_.steps.size() || place() < block_.needed) return;
    block_.stopped_early = skip_compute = true;
}

}  // namespace tally::detail
