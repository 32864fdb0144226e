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
CheckpointTrace::CheckpointTrace(TraceLog& log, Mode mode)
    : log_(log),
      outer_(current()),
      first_inner_id_(context.next_id),
      mode_(mode),
      skip_compute_before_(skip_compute) {
    context.interceptor = this;
    log_.stopped_early = false;
    if (is_first_run())
        log_.has_checksums = verifying && !skip_compute;  // values that are not computed have no checksum
    else
        stop_computing_if_done();
}

CheckpointTrace::~CheckpointTrace() {
    skip_compute = skip_compute_before_;
    context.interceptor = outer_;
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
    if (instrumentation::detail::observer) notify_without_node(operation.op, operation.result_info());
    note_outer_inputs(operation);
    log_.operations.push_back({operation.op, log_.has_checksums ? operation.result_checksum() : 0,
                               input_checksum(operation), std::exchange(outer_inputs_, {})});
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
