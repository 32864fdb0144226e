// Noting and comparing what a checkpointed function does.
#include "tally/checkpoint/block.hpp"

#include <algorithm>
#include <utility>

#include "tally/base/error.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally {

namespace {

std::uint64_t mixed(std::uint64_t sum, std::uint64_t next) { return (sum ^ next) * 0x9E3779B97F4A7C15u; }

}  // namespace

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

// ---- both times ----

std::size_t BlockRun::made_by(const Node& node) const {
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), node.id);
    return found != ids_.end() && *found == node.id ? static_cast<std::size_t>(found - ids_.begin())
                                                    : place();
}

std::uint64_t BlockRun::origin(const Node& operand) const {
    return operand.id < mark_ ? ~operand.id : made_by(operand);
}

// Of what a rule holds, and of where the operands come from.
std::uint64_t BlockRun::held(const NewOperation& operation) const {
    std::uint64_t sum = operation.constants.value_or(0);
    for (const ReadValue& value : operation.reads)
        if (block_.verified && value.checksum && value.address)
            sum = mixed(sum, value.checksum(value.address));
    for (std::size_t i = 0; i < operation.operands; ++i) sum = mixed(sum, origin(*operation.operand(i).node));
    return sum;
}

// What was made outside. An operation of a function inside of another is one of both. What is no parameter
// and no constant may come back in another buffer (revolve), and only its version counts.
void BlockRun::read_outside(const NewOperation& operation) {
    for (std::size_t i = 0; i < operation.operands; ++i) {
        const Node& node = *operation.operand(i).node;
        if (node.id >= mark_) continue;
        const bool stays = node.state == State::leaf || node.state == State::constant;
        const Contents contents = operation.contents(i);
        std::shared_ptr<const void> buffer;
        for (BlockRun* run = this; run && node.id < run->mark_; run = run->around_) {
            run->outside_.versions += contents.version;
            if (!stays) continue;
            run->outside_.values = mixed(run->outside_.values, contents.which);
            if (!run->first() || std::exchange(run->last_held_, contents.which) == contents.which) continue;
            if (!buffer) buffer = operation.hold(i);
            if (buffer) run->block_.read.push_back(buffer);
        }
    }
}

// ---- the first time ----

void BlockRun::read_by_rule(const ReadValue& value, const NewOperation& operation) {
    if (value.address == operation.result) return reading_result_.push_back(place());
    for (std::size_t i = 0; i < operation.operands; ++i) {
        const Operand operand = operation.operand(i);
        if (operand.value != value.address) continue;
        if (operand.node->id >= mark_) need(made_by(*operand.node));
        return;
    }
    need(place());  // what is made nowhere else
}

void BlockRun::note(const NewOperation& operation) {
    for (const ReadValue& value : operation.reads)
        if (value.address) read_by_rule(value, operation);
    if (!operation.constants) need(place());  // it is computed again, and its value compared
    if (watching::observer) tell_unrecorded(operation.op, operation.observed_result());
    read_outside(operation);
    block_.steps.push_back({operation.op, block_.verified ? operation.result_checksum() : 0, held(operation),
                            std::exchange(outside_, {})});
}

std::vector<std::optional<std::size_t>> BlockRun::close(const std::vector<const Node*>& results, bool keeps) {
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

// ---- again ----

void BlockRun::rest_if_done() {
    if (block_.needed >= block_.steps.size() || place() < block_.needed) return;
    block_.rested = kernels_rest = true;
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

void BlockRun::expect_same(const NewOperation& operation) {
    const std::size_t which = place();
    const std::string op = operation.op;
    const Outside outside = std::exchange(outside_, {});
    const auto described = [&] { return "operation " + std::to_string(which + 1) + " "; };
    if (which >= block_.steps.size())
        throw Error("[checkpoint] the function did " + std::to_string(block_.steps.size()) +
                    " operations, and now goes on with '" + op + "'; it must do the same when it runs again");
    const Block::Step& before = block_.steps[which];
    if (before.op != op)
        throw Error("[checkpoint] " + described() + "was '" + before.op + "' and is now '" + op +
                    "'; the function must do the same when it runs again");
    if (before.outside.versions != outside.versions)
        throw Error("[checkpoint] " + described() + "'" + op +
                    "' reads parameters or constants that were changed in place between forward and backward "
                    "(versions " +
                    std::to_string(before.outside.versions) + " and " + std::to_string(outside.versions) +
                    "); step the optimizer after backward()");
    if (before.held != held(operation))
        throw Error("[checkpoint] " + described() + "'" + op +
                    "' has other operands or other sizes than the first time; the function must do the same "
                    "when it runs again");
    if (before.outside.values != outside.values)
        throw Error("[checkpoint] " + described() + "'" + op +
                    "' reads a parameter or constant that was given another value between forward and "
                    "backward; give it one after backward()");
}

void BlockRun::compare(const NewOperation& operation) const {
    const Block::Step& before = block_.steps[place()];
    if (before.checksum == operation.result_checksum()) return;
    throw Error("[checkpoint] operation " + std::to_string(place() + 1) + " '" + before.op + "', of " +
                operation.result_form() +
                ", gave other values than the first time; a checkpointed function must be a function of its "
                "inputs (give randomness a seed and an index)");
}

void BlockRun::close_again(const std::vector<const Node*>& results) const {
    if (place() < block_.steps.size())
        throw Error("[checkpoint] the function did " + std::to_string(block_.steps.size()) +
                    " operations, and now only " + std::to_string(place()) +
                    "; it must do the same when it runs again");
    if (results.size() != block_.results.size())
        throw Error("[checkpoint] the function gave " + std::to_string(block_.results.size()) +
                    " results, and now " + std::to_string(results.size()));
    for (std::size_t i = 0; i < results.size(); ++i)
        if (origin(*results[i]) != block_.results[i])
            throw Error("[checkpoint] result " + std::to_string(i + 1) +
                        " is another than the first time; the function must do the same when it runs again");
}

}  // namespace detail

}  // namespace tally
