// What a checkpointed function did, operation by operation: noted when it runs for the first time, and held
// against it when it runs again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tally/autograd/node.hpp"
#include "tally/autograd/recorder.hpp"
#include "tally/base/scoped_value.hpp"

namespace tally {

namespace detail {
inline constinit thread_local bool verifying = true;  // false inside NoCheckpointVerification
}  // namespace detail

// A checkpointed function that runs for the first time while one lives, on this thread, is not compared value
// by value when it runs again.
struct [[nodiscard]] NoCheckpointVerification : private detail::ScopedValue<bool> {
    [[nodiscard]] NoCheckpointVerification() : ScopedValue(detail::verifying, false) {}
};

// True while a checkpointed function runs again. What shall happen only once (an effect, a line
// of output) asks.
bool is_recomputing();

namespace detail {
// What was made outside of a function and read inside, in numbers to compare.
struct CapturedInputs {
    std::uint32_t versions = 0;  // added up
    std::uint64_t values = 0;    // of parameters and constants: which buffers, or which numbers
};

// A buffer, held as a rule holds what it saves.
class HeldBuffer {
public:
    explicit HeldBuffer(memory::detail::Storage* storage) : storage_(storage) {
        memory::detail::ref_saved(storage_);
    }
    HeldBuffer(HeldBuffer&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
    HeldBuffer& operator=(HeldBuffer&& other) noexcept {
        std::swap(storage_, other.storage_);
        return *this;
    }
    ~HeldBuffer() {
        if (storage_) memory::detail::unref_saved(storage_);
    }

private:
    memory::detail::Storage* storage_;
};

struct TraceLog {
    struct Step {
        std::string op;
        std::uint64_t checksum;    // of its value
        std::uint64_t held;        // of its operands, and of what its rule holds beside values
        CapturedInputs outside{};  // read by it, or since the operation before
    };
    std::vector<Step> steps;
    std::vector<HeldBuffer> read;        // parameters and constants: while held, no other has their place
    std::vector<std::uint64_t> results;  // where they come from
    std::size_t needed = 0;              // so many of them make every value that a rule will read
    bool verified = false;
    bool stopped_early = false;  // when it ran last, not all was computed
};

// If not null, collects the parameters that a block reads and that are not inputs of its node.
inline constinit thread_local std::vector<const Node*>* read_in_blocks = nullptr;

// One way through the function. While it lives, every operation that is recorded comes here.
class CheckpointTrace : public Recorder {
public:
    enum class Mode : std::uint8_t { record, replay };
    CheckpointTrace(TraceLog& block, Mode mode);
    virtual ~CheckpointTrace();
    CheckpointTrace(const CheckpointTrace&) = delete;
    CheckpointTrace& operator=(const CheckpointTrace&) = delete;
    // The innermost on this thread, or null: no other class is a Recorder.
    static CheckpointTrace* current() { return static_cast<CheckpointTrace*>(context.recorder); }

    bool first() const { return mode_ == Mode::record; }
    bool is_recomputing() const { return !first() || (around_ && around_->is_recomputing()); }

    // At the end of the first: of every result, the place of the operation that made it, if that result is
    // worth keeping. A rule reads it, so it would have to be computed again, and with it what leads there.
    std::vector<std::optional<std::size_t>> finish_recording(const std::vector<const Node*>& results,
                                                             bool keeps = true);
    void finish_replay(const std::vector<const Node*>& results) const;

private:
    bool on_operation(OpInfo& operation) final;
    void record_op(const OpInfo& operation);
    void replay_op(OpInfo& operation);
    // Gives an operation the result that was kept of it; says whether one was.
    virtual bool restore(std::size_t /*place*/, OpInfo&) const { return false; }

    std::size_t place() const { return ids_.size(); }  // of the operation that comes next
    std::size_t made_by(const Node& node) const;       // the place; place() if it is not known
    // Where an operand comes from: the same number both times, if it is the same one.
    std::uint64_t origin(const Node& operand) const;
    std::uint64_t held(const OpInfo& operation) const;
    void check_captured_inputs(const OpInfo& operation);
    void read_by_rule(const SavedInput& value, const OpInfo& operation);
    void need(std::size_t place) { block_.needed = block_.needed > place ? block_.needed : place + 1; }
    void expect_same(const OpInfo& operation);
    void compare(const OpInfo& operation) const;  // the value
    void stop_computing_if_done();

    TraceLog& block_;
    CheckpointTrace* const around_;
    const std::uint64_t mark_;  // the nodes made inside have this id or a larger one
    const Mode mode_;
    const bool skip_compute_before_;
    std::vector<std::uint64_t> ids_;  // of the operations' results
    std::vector<std::size_t> reading_result_;
    CapturedInputs outside_;       // since the last operation
    std::uint64_t last_held_ = 0;  // place of the buffer
};
}  // namespace detail

}  // namespace tally
