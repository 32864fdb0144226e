// What becomes of each operation of a checkpointed function. block_same.cpp compares, block_needed.cpp spares time.
#include "tally/checkpoint/block.hpp"

#include <utility>

#include "tally/kernels/kernels.hpp"

namespace tally {

bool recomputing() { return detail::BlockRun::current() && detail::BlockRun::current()->recomputing(); }

namespace detail {

BlockRun::BlockRun(Block& block, Time time)
    : block_(block), around_(current()), mark_(context.next_id), time_(time), resting_before_(kernels_rest) {
    context.recorder = this;
    block_.rested = false;
    if (first())
        block_.verified = verifying && !kernels_rest;  // of what is not computed nothing is known
    else
        rest_if_done();
}

BlockRun::~BlockRun() {
    kernels_rest = resting_before_;
    context.recorder = around_;
}

bool BlockRun::admit(NewOperation& operation) {
    if (!operation.recorded) {  // nothing is noted of it, so it must be there when the function runs again
        read_outside(operation);
        if (first()) need(place());
        return true;
    }
    if (first())
        note(operation);
    else
        meet_again(operation);
    ids_.push_back(context.next_id);  // its node is the next to be made
    if (!first()) rest_if_done();
    return !first();
}

void BlockRun::note(const NewOperation& operation) {
    for (const ReadValue& value : operation.reads)
        if (value.address) read_by_rule(value, operation);
    if (!operation.constants) need(place());  // it is computed again, and its value compared
    if (watching::detail::observer) tell_unrecorded(operation.op, operation.observed_result());
    read_outside(operation);
    block_.steps.push_back({operation.op, block_.verified ? operation.result_checksum() : 0, held(operation),
                            std::exchange(outside_, {})});
}

// The value was computed and must be the same, or was kept, or is not needed.
void BlockRun::meet_again(NewOperation& operation) {
    read_outside(operation);
    expect_same(operation);
    if (place() < block_.needed) {
        if (block_.verified) compare(operation);
    } else if (!restore(place(), operation)) {
        operation.let_result_go();
    }
}

}  // namespace detail

}  // namespace tally
