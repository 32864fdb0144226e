// What a checkpointed function did, operation by operation: noted when it runs for the first time, and held
// against it when it runs again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "autograd/node.hpp"

namespace tally {

// A checkpointed function that runs for the first time while one lives, on this thread, is not compared value
// by value when it runs again.
class Unverified {
public:
    Unverified() : before_(std::exchange(context.verifying, false)) {}
    ~Unverified() { context.verifying = before_; }
    Unverified(const Unverified&) = delete;
    Unverified& operator=(const Unverified&) = delete;

private:
    bool before_;
};

// True while a checkpointed function runs again. What shall happen only once (an effect, a line of output)
// asks.
bool recomputing();

// What was made outside of a function and read inside, in numbers to compare.
struct Outside {
    std::uint32_t versions = 0;  // added up
    std::uint64_t values = 0;    // of parameters and constants: which buffers, or which numbers
};

struct Block {
    struct Step {
        std::string op;
        std::uint64_t checksum;  // of its value
        std::uint64_t held;      // of its operands, and of what its rule holds beside values
        Outside outside{};       // read by it, or since the operation before
    };
    std::vector<Step> steps;
    std::vector<std::shared_ptr<const void>>
        read;                            // parameters and constants: while held, no other has their place
    std::vector<std::uint64_t> results;  // where they come from
    std::size_t needed = 0;              // so many of them make every value that a rule will read
    bool verified = false;
    bool rested = false;  // when it ran last, not all was computed
};

// One way through the function. While it lives, every operation that is recorded comes here.
class BlockRun {
public:
    enum class Time : std::uint8_t { first, again };
    BlockRun(Block& block, Time time);
    virtual ~BlockRun();
    BlockRun(const BlockRun&) = delete;
    BlockRun& operator=(const BlockRun&) = delete;

    bool first() const { return time_ == Time::first; }
    bool verified() const { return block_.verified; }
    bool recomputing() const { return !first() || (around_ && around_->recomputing()); }
    std::size_t place() const { return ids_.size(); }  // of the operation that comes next

    // Where an operand comes from: the same number both times, if it is the same one.
    std::uint64_t origin(const Node& operand) const;

    // Both times: an operand that the operation that comes next reads, if it was made outside. Says whether
    // its buffer is to be held.
    bool reads_outside(const Node& operand, std::uint32_t version, std::uint64_t value);
    void hold(const Node& operand, const std::shared_ptr<const void>& buffer);

    // ---- the first time: the operation that comes next ... ----
    void reads(const Node& operand);  // its rule will read the value of an operand
    void reads_result() { reading_result_.push_back(place()); }
    void reads_inside() { need(place()); }  // what is made nowhere else
    void note(Block::Step step, const Node& result);
    // At its end: of every result, the place of the operation that made it, if that result is worth keeping.
    // A rule reads it, so it would have to be computed again, and with it what leads there.
    std::vector<std::optional<std::size_t>> close(const std::vector<const Node*>& results, bool keeps = true);

    // ---- again ----
    // Says whether the operation that comes next is computed, or merely recorded.
    bool meet(const char* op, std::uint64_t held);
    void compare(std::uint64_t checksum, const std::string& form) const;  // what it computed
    void step();  // on to the next, once this one's node is the next to be made
    void close_again(const std::vector<const Node*>& results) const;
    // A result that was kept, a `type`; null where there is none.
    virtual const void* kept(std::size_t /*place*/, const std::type_info& /*type*/) const { return nullptr; }

private:
    void need(std::size_t place) { block_.needed = block_.needed > place ? block_.needed : place + 1; }
    std::size_t made_by(const Node& node) const;  // the place; place() if it is not known
    void rest_if_done();

    Block& block_;
    BlockRun* const around_;
    const std::uint64_t mark_;  // the nodes made inside have this id or a larger one
    const Time time_;
    const bool resting_before_;
    std::vector<std::uint64_t> ids_;  // of the operations' results
    std::vector<std::size_t> reading_result_;
    Outside outside_;              // since the last operation
    std::uint64_t last_held_ = 0;  // place of the buffer
};

}  // namespace tally
