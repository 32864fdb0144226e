// Noting and comparing what a checkpointed function does; and the kernels that rest.
#include "autograd/block.hpp"

#include <algorithm>
#include <utility>

#include "autograd/dual.hpp"
#include "autograd/error.hpp"
#include "autograd/kernel_slots.hpp"
#include "autograd/kernels.hpp"

namespace tally {

namespace {

// Turns into a pointer to a function of any kind that does nothing.
template <std::size_t>
struct DoesNothing {
    template <class... Arguments>
    using Function = void(Arguments...);
    template <class... Arguments>
    constexpr operator Function<Arguments...>*() const {
        return [](Arguments...) {};
    }
};

}  // namespace

bool recomputing() { return context.block && context.block->recomputing(); }

BlockRun::BlockRun(Block& block, Time time)
    : block_(block),
      around_(std::exchange(context.block, this)),
      mark_(context.next_id),
      time_(time),
      resting_before_(kernels_rest) {
    block_.rested = false;
    if (first())
        block_.verified = context.verifying && !kernels_rest;  // of what is not computed nothing is known
    else
        rest_if_done();
}

BlockRun::~BlockRun() {
    kernels_rest = resting_before_;
    context.block = around_;
}

// An operation of a function inside of another is one of both. What is no parameter and no constant may come
// back in another buffer (revolve), and only its version counts.
bool BlockRun::reads_outside(const Node& operand, std::uint32_t version, std::uint64_t value) {
    const bool stays = operand.state == State::leaf || operand.state == State::constant;
    bool holds = false;
    for (BlockRun* run = this; run && operand.id < run->mark_; run = run->around_) {
        run->outside_.versions += version;
        if (!stays) continue;
        run->outside_.values = (run->outside_.values ^ value) * 0x9E3779B97F4A7C15u;
        holds = holds || (run->first() && run->last_held_ != value);
        if (run->first()) run->last_held_ = value;
    }
    return holds;
}

void BlockRun::hold(const Node& operand, const std::shared_ptr<const void>& buffer) {
    for (BlockRun* run = this; run && operand.id < run->mark_; run = run->around_)
        if (run->first()) run->block_.read.push_back(buffer);
}

// ---- the first time ----

std::size_t BlockRun::made_by(const Node& node) const {
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), node.id);
    return found != ids_.end() && *found == node.id ? static_cast<std::size_t>(found - ids_.begin())
                                                    : place();
}

std::uint64_t BlockRun::origin(const Node& operand) const {
    return operand.id < mark_ ? ~operand.id : made_by(operand);
}

void BlockRun::reads(const Node& operand) {
    if (operand.id >= mark_) need(made_by(operand));
}

void BlockRun::note(Block::Step step, const Node& result) {
    step.outside = std::exchange(outside_, {});
    block_.steps.push_back(std::move(step));
    ids_.push_back(result.id);
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

bool BlockRun::meet(const char* op, std::uint64_t held) {
    const std::size_t which = place();
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
    if (before.held != held)
        throw Error("[checkpoint] " + described() + "'" + op +
                    "' has other operands or other sizes than the first time; the function must do the same "
                    "when it runs again");
    if (before.outside.values != outside.values)
        throw Error("[checkpoint] " + described() + "'" + op +
                    "' reads a parameter or constant that was given another value between forward and "
                    "backward; give it one after backward()");
    return which < block_.needed;
}

void BlockRun::compare(std::uint64_t checksum, const std::string& form) const {
    const Block::Step& before = block_.steps[place()];
    if (before.checksum == checksum) return;
    throw Error("[checkpoint] operation " + std::to_string(place() + 1) + " '" + before.op + "', of " + form +
                ", gave other values than the first time; a checkpointed function must be a function of its "
                "inputs (give randomness a seed and an index)");
}

void BlockRun::step() {
    ids_.push_back(context.next_id);
    rest_if_done();
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

template <class S>
const Kernels<S>& resting_kernels() {
    static constexpr Kernels<S> resting = each_slot<S, DoesNothing>();
    return resting;
}

template const Kernels<float>& resting_kernels();
template const Kernels<double>& resting_kernels();
template const Kernels<Dual<double>>& resting_kernels();

}  // namespace tally
