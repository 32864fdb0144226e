// Decides how many operations of a checkpointed function the recomputation computes. The last operations are
// skipped if their results are saved, or if no backward function reads them. Skipping saves time, not memory.
#include <algorithm>

#include "tally/checkpoint/trace.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

std::size_t CheckpointTrace::operation_of(const Node& node) const {
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), node.id);
    return found != ids_.end() && *found == node.id ? static_cast<std::size_t>(found - ids_.begin())
                                                    : next_index();
}

void CheckpointTrace::note_saved_value(const SavedRef& value, const OpInfo& operation) {
    if (value.address == operation.result) return saves_own_result_.push_back(next_index());
    for (std::size_t i = 0; i < operation.input_count; ++i) {
        const OpInput input = operation.input(i);
        if (input.value != value.address) continue;
        if (input.node->id >= first_inner_id_) need(operation_of(*input.node));
        return;
    }
    need(next_index());  // only this operation can compute the saved value
}

std::vector<std::optional<std::size_t>> CheckpointTrace::end_first_run(
    const std::vector<const Node*>& results, bool can_save) {
    std::vector<std::size_t> indices;
    for (const Node* result : results) {
        indices.push_back(operation_of(*result));
        log_.results.push_back(stable_id(*result));
    }
    for (const std::size_t index : saves_own_result_)
        if (!can_save || std::find(indices.begin(), indices.end(), index) == indices.end()) need(index);
    std::vector<std::optional<std::size_t>> to_save;
    for (const std::size_t index : indices) {
        const bool read = std::binary_search(saves_own_result_.begin(), saves_own_result_.end(), index);
        to_save.push_back(read && index >= log_.needed ? std::optional(index) : std::nullopt);
    }
    return to_save;
}

void CheckpointTrace::stop_computing_if_done() {
    if (log_.needed >= log_.operations.size() || next_index() < log_.needed) return;
    log_.stopped_early = skip_compute = true;
}

}  // namespace tally::detail
