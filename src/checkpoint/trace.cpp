// What becomes of each operation of a checkpointed function. block_same.cpp compares, block_needed.cpp spares time.
#include "tally/checkpoint/trace.hpp"

#include <utility>

#include "tally/kernels/kernels.hpp"

namespace tally {

bool is_recomputing() {
    return detail::CheckpointTrace::current() && detail::CheckpointTrace::current()->is_recomputing();
}

namespace detail {
CheckpointTrace::CheckpointTrace(TraceLog& block, Mode mode)
    : block_(block),
      around_(current()),
      mark_(context.next_id),
      mode_(mode),
      skip_compute_before_(skip_compute) {
    context.recorder = this;
    block_.stopped_early = false;
    if (first())
        block_.verified = verifying && !skip_compute;  // of what is not computed nothing is known
    else
        stop_computing_if_done();
}

CheckpointTrace::~CheckpointTrace() {
    skip_compute = skip_compute_before_;
    context.recorder = around_;
}

bool CheckpointTrace::on_operation(OpInfo& operation) {
    if (!operation.recorded) {  // nothing is noted of it, so it must be there when the function runs again
        check_captured_inputs(operation);
        if (first()) need(place());
        return true;
    }
    if (first())
        record_op(operation);
    else
        replay_op(operation);
    ids_.push_back(context.next_id);  // its node is the next to be made
    if (!first()) stop_computing_if_done();
    return !first();
}

void CheckpointTrace::record_op(const OpInfo& operation) {
    for (const SavedInput& value : operation.reads)
        if (value.address) read_by_rule(value, operation);
    if (!operation.constants) need(place());  // it is computed again, and its value compared
    if (watching::detail::observer) notify_constant(operation.op, operation.observed_result());
    check_captured_inputs(operation);
    block_.steps.push_back({operation.op, block_.verified ? operation.result_checksum() : 0, held(operation),
                            std::exchange(outside_, {})});
}

// The value was computed and must be the same, or was kept, or is not needed.
void CheckpointTrace::replay_op(OpInfo& operation) {
    check_captured_inputs(operation);
    expect_same(operation);
    if (place() < block_.needed) {
        if (block_.verified) compare(operation);
    } else if (!restore(place(), operation)) {
        operation.drop_result();
    }
}
}  // namespace detail

}  // namespace tally
