// Compares the recomputation of a checkpointed function with the log of the first run.
#include <utility>

#include "tally/base/error.hpp"
#include "tally/checkpoint/trace.hpp"

namespace tally::detail {

namespace {

std::uint64_t mixed(std::uint64_t sum, std::uint64_t next) { return (sum ^ next) * 0x9E3779B97F4A7C15u; }

}  // namespace

std::uint64_t CheckpointTrace::stable_id(const Node& operand) const {
    return operand.id < first_inner_id_ ? ~operand.id : operation_of(operand);
}

// Returns a checksum of the captured values, the saved labels or indices, and the identities of the operands.
std::uint64_t CheckpointTrace::input_checksum(const OpInfo& operation) const {
    std::uint64_t sum = operation.captures_checksum.value_or(0);
    for (const SavedRef& ref : operation.saved)
        if (log_.has_checksums && ref.checksum && ref.address) sum = mixed(sum, ref.checksum(ref.address));
    for (std::size_t i = 0; i < operation.input_count; ++i)
        sum = mixed(sum, stable_id(*operation.input(i).node));
    return sum;
}

// Returns a checksum of a sample of the result. With `compares_all`, returns a checksum of the whole result and of each
// operand that the function made without a logged operation, such as a constant.
std::uint64_t CheckpointTrace::value_checksum(const OpInfo& operation, bool compares_all) const {
    if (!compares_all) return operation.result_checksum(log_.sample);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < operation.input_count; ++i)
        if (is_made_without_operation(*operation.input(i).node))
            sum = mixed(sum, operation.input_checksum(i));
    return mixed(sum, operation.result_checksum({}));
}

// Adds operands from outside the function to `outer_inputs_` of this trace and all enclosing traces. An
// intermediate result adds only its version, because Revolve may recompute the result in a different buffer.
void CheckpointTrace::note_outer_inputs(const OpInfo& operation) {
    for (std::size_t i = 0; i < operation.input_count; ++i) {
        const Node& node = *operation.input(i).node;
        if (node.id >= first_inner_id_) continue;
        const bool keeps_buffer = node.state == State::leaf || node.state == State::constant;
        if (parameters_read && node.state == State::leaf) parameters_read->push_back(&node);
        const InputIdentity identity = operation.identity(i);
        memory::detail::Storage* const buffer = operation.buffer(i);
        for (CheckpointTrace* run = this; run && node.id < run->first_inner_id_; run = run->outer_) {
            run->outer_inputs_.versions += identity.version;
            if (!keeps_buffer) continue;
            run->outer_inputs_.identities = mixed(run->outer_inputs_.identities, identity.buffer_or_checksum);
            if (!run->is_first_run() ||
                std::exchange(run->last_held_id_, identity.buffer_or_checksum) == identity.buffer_or_checksum)
                continue;
            if (buffer) run->log_.held_buffers.emplace_back(buffer);
        }
    }
}

void CheckpointTrace::require_same_operation(const OpInfo& operation) {
    const std::size_t which = next_index();
    const std::string op = operation.op;
    const OuterInputs outer_inputs = std::exchange(outer_inputs_, {});
    const auto described = [&] { return "operation " + std::to_string(which + 1) + " "; };
    if (which >= log_.operations.size())
        throw Error("[checkpoint] the first run had " + std::to_string(log_.operations.size()) +
                    " operations, but the recomputation adds '" + op + "'; both runs must do the same");
    const TraceLog::Operation& before = log_.operations[which];
    if (before.op != op)
        throw Error("[checkpoint] " + described() + "was '" + before.op + "' and is now '" + op +
                    "'; the function must do the same when it runs again");
    if (before.outer_inputs.versions != outer_inputs.versions)
        throw Error("checkpoint", described(), "'", op,
                    "' reads parameters or constants that were changed in place between forward and "
                    "backward; step the optimizer after backward()");
    if (before.input_checksum != input_checksum(operation))
        throw Error("checkpoint", described(), "'", op,
                    "' has other operands, labels, indices or numbers than the first time; the function must "
                    "do the same when it runs again");
    if (before.outer_inputs.identities != outer_inputs.identities)
        throw Error("[checkpoint] " + described() + "'" + op +
                    "' reads a parameter or constant that was given another value between forward and "
                    "backward; assign the new value after backward()");
}

void CheckpointTrace::require_same_value(const OpInfo& operation) const {
    const TraceLog::Operation& before = log_.operations[next_index()];
    if (before.checksum == value_checksum(operation, before.compares_all)) return;
    throw Error(
        "[checkpoint] operation " + std::to_string(next_index() + 1) + " '" + before.op + "', of " +
        operation.describe_result() +
        ", gave other values than the first time; a checkpointed function must give the same values in each "
        "run: give randomness a seed and an index, keep objects captured by reference alive until backward() "
        "ends, and call set_products() before the forward pass or after backward()");
}

void CheckpointTrace::end_recomputation(const std::vector<const Node*>& results) const {
    if (next_index() < log_.operations.size())
        throw Error("[checkpoint] the first run had " + std::to_string(log_.operations.size()) +
                    " operations, and the recomputation had only " + std::to_string(next_index()) +
                    "; both runs must do the same");
    if (results.size() != log_.results.size())
        throw Error("[checkpoint] the first run returned " + std::to_string(log_.results.size()) +
                    " results, and the recomputation " + std::to_string(results.size()));
    for (std::size_t i = 0; i < results.size(); ++i)
        if (stable_id(*results[i]) != log_.results[i])
            throw Error("[checkpoint] result " + std::to_string(i + 1) +
                        " differs from the first run; the function must do the same when it runs again");
}

}  // namespace tally::detail
