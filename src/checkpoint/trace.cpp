// Handles each operation of a checkpointed function. recompute_check.cpp compares the operations of two runs.
// early_stop.cpp decides which operations a recomputation computes.
#include "tally/checkpoint/trace.hpp"

#include <utility>

#include "tally/kernels/kernels.hpp"

namespace tally {

bool is_recomputing() {
    return detail::CheckpointTrace::current() && detail::CheckpointTrace::current()->is_recomputing();
}

namespace detail {
namespace {
thread_local constinit std::uint64_t first_runs = 0;

// Returns the sample of the next first run. Multiples of the golden ratio spread over all samples, also for one of
// several checkpoints in a step.
unsigned next_sample() { return static_cast<unsigned>(first_runs++ * 0x9E3779B97F4A7C15u >> 61); }
}  // namespace

CheckpointTrace::CheckpointTrace(TraceLog& log, Mode mode)
    : log_(log),
      outer_(current()),
      first_inner_id_(context.next_id),
      mode_(mode),
      interceptor_(context.interceptor, this),
      skip_compute_(skip_compute, skip_compute) {
    log_.stopped_early = false;
    if (is_first_run()) {
        log_.has_checksums = verifying && !skip_compute;  // values that are not computed have no checksum
        log_.sample = next_sample();
    } else {
        stop_computing_if_done();
    }
}

bool CheckpointTrace::on_operation(OpInfo& operation) {
    if (!operation.needs_grad) {
        // The log does not list operations with constant results. The next listed operation counts as needed, so
        // that the recomputation does not stop before this one.
        note_outer_inputs(operation);
        if (is_first_run()) need(next_index());
        return true;
    }
    if (is_first_run())
        log_op(operation);
    else
        recompute_op(operation);
    ids_.push_back(context.next_id);  // the id that the node of this operation will get
    if (!is_first_run()) stop_computing_if_done();
    return !is_first_run();
}

void CheckpointTrace::log_op(const OpInfo& operation) {
    for (const SavedRef& value : operation.saved)
        if (value.address) note_saved_value(value, operation);
    // If captured values have no checksum, only a recomputed result can show that these values changed.
    if (!operation.captures_checksum) need(next_index());
    // Equal operands then do not guarantee an equal result.
    bool compares_all = !operation.captures_checksum;
    for (std::size_t i = 0; i < operation.input_count; ++i)
        if (is_made_without_operation(*operation.input(i).node)) compares_all = true;
    if (instrumentation::detail::observer) notify_without_node(operation.op, operation.result_info());
    note_outer_inputs(operation);
    log_.operations.push_back({operation.op, log_.has_checksums ? value_checksum(operation, compares_all) : 0,
                               compares_all, input_checksum(operation), std::exchange(outer_inputs_, {})});
}

// Throws Error if a recomputed value differs from the first run. Restores or drops a skipped value.
void CheckpointTrace::recompute_op(OpInfo& operation) {
    note_outer_inputs(operation);
    require_same_operation(operation);
    if (next_index() < log_.needed) {
        if (log_.has_checksums) require_same_value(operation);
    } else if (!restore(next_index(), operation)) {
        operation.drop_result();
    }
}
}  // namespace detail

}  // namespace tally
