// CheckpointTrace logs the operations of a checkpointed function, and compares them with the recomputation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tally/autograd/interceptor.hpp"
#include "tally/autograd/node.hpp"
#include "tally/base/scoped_value.hpp"

namespace tally {

namespace detail {
inline constinit thread_local bool verifying = true;  // false inside NoCheckpointVerification
}  // namespace detail

// While a NoCheckpointVerification exists, the first runs of checkpointed functions on its thread store no
// checksums of values, so that the recomputations do not compare values.
struct [[nodiscard]] NoCheckpointVerification : private detail::ScopedValue<bool> {
    [[nodiscard]] NoCheckpointVerification() : ScopedValue(detail::verifying, false) {}
};

// Returns true while a checkpointed function runs again, so that the function can skip its side effects.
bool is_recomputing();

namespace detail {
// OuterInputs identify the values that a checkpointed function reads from outside, including its arguments.
struct OuterInputs {
    std::uint32_t versions = 0;    // the sum of the versions of the buffers
    std::uint64_t identities = 0;  // a checksum of the buffers' addresses and of the numbers
};

// A HeldBuffer refers to a buffer, so that the buffer is not freed.
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

// A TraceLog lists the operations of the first run, which the recomputation of the function must repeat.
struct TraceLog {
    struct Operation {
        std::string op;
        std::uint64_t checksum;        // see value_checksum()
        bool compares_all;             // the checksum is of all bytes, not of a sample
        std::uint64_t input_checksum;  // see input_checksum() in recompute_check.cpp
        OuterInputs outer_inputs{};  // read by this operation and by constant operations since the last entry
    };
    std::vector<Operation> operations;
    std::vector<HeldBuffer> held_buffers;  // keeps the addresses of parameters and constants unique
    std::vector<std::uint64_t> results;    // the stable_id() of each result
    // The recomputation computes the first `needed` operations, and restores later results that are read.
    std::size_t needed = 0;
    bool has_checksums = false;  // each Operation::checksum was computed
    unsigned sample = 0;         // for sampled_checksum_of()
    bool stopped_early = false;  // the last run did not compute all operations
};

// If not null, points to a list to which checkpointed functions add each parameter that they read.
inline constinit thread_local std::vector<const Node*>* parameters_read = nullptr;

// A CheckpointTrace exists during one run of a checkpointed function, and intercepts each operation.
class CheckpointTrace : public Interceptor {
public:
    enum class Mode : std::uint8_t { first_run, recompute };
    CheckpointTrace(TraceLog& log, Mode mode);
    virtual ~CheckpointTrace() = default;
    CheckpointTrace(const CheckpointTrace&) = delete;
    CheckpointTrace& operator=(const CheckpointTrace&) = delete;
    // Returns the innermost trace of this thread, or null. Every Interceptor is a CheckpointTrace.
    static CheckpointTrace* current() { return static_cast<CheckpointTrace*>(context.interceptor); }

    bool is_first_run() const { return mode_ == Mode::first_run; }
    bool is_recomputing() const { return !is_first_run() || (outer_ && outer_->is_recomputing()); }

    // Ends the first run. For each result that must be saved, returns the index of the operation. A result
    // must be saved if a backward function reads the result and the recomputation does not compute it.
    // `can_save` is false if the caller does not store saved results.
    std::vector<std::optional<std::size_t>> end_first_run(const std::vector<const Node*>& results,
                                                          bool can_save = true);
    void end_recomputation(const std::vector<const Node*>& results) const;

private:
    bool on_operation(OpInfo& operation) final;
    void log_op(const OpInfo& operation);
    void recompute_op(OpInfo& operation);
    // Replaces the result of an operation by the saved result, or returns false if no result was saved.
    virtual bool restore(std::size_t /*index*/, OpInfo&) const { return false; }

    std::size_t next_index() const { return ids_.size(); }  // the index of the next operation
    std::size_t operation_of(const Node& node) const;  // the index of its operation; next_index() if unknown
    // Returns a number that identifies the operand in the first run and in the recomputation.
    std::uint64_t stable_id(const Node& operand) const;
    std::uint64_t input_checksum(const OpInfo& operation) const;
    // Returns whether the function made the operand, but not by an operation that the log lists.
    bool is_made_without_operation(const Node& operand) const {
        return operand.id >= first_inner_id_ && operation_of(operand) == next_index();
    }
    std::uint64_t value_checksum(const OpInfo& operation, bool compares_all) const;
    void note_outer_inputs(const OpInfo& operation);
    void note_saved_value(const SavedRef& value, const OpInfo& operation);
    void need(std::size_t index) { log_.needed = log_.needed > index ? log_.needed : index + 1; }
    void require_same_operation(const OpInfo& operation);
    void require_same_value(const OpInfo& operation) const;
    void stop_computing_if_done();

    TraceLog& log_;
    CheckpointTrace* const outer_;
    const std::uint64_t first_inner_id_;  // of the nodes that this run makes
    const Mode mode_;
    const ScopedValue<Interceptor*> interceptor_;
    const ScopedValue<bool> skip_compute_;  // restores skip_compute, which stop_computing_if_done() may set
    std::vector<std::uint64_t> ids_;        // of the operations' results
    std::vector<std::size_t> saves_own_result_;  // indices of operations that save their own results
    OuterInputs outer_inputs_;                   // since the last operation
    // InputIdentity::buffer_or_checksum of the last noted value. A value that is noted twice in a row is held once.
    std::uint64_t last_held_id_ = 0;
};
}  // namespace detail

}  // namespace tally
