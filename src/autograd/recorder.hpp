// A Recorder is asked about every operation of its thread before it becomes a node: a checkpointed function
// that runs is one. Here is what it is shown, without the type of the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tally/autograd/observer.hpp"

namespace tally::detail {

// An input of an operation, and the address of its value.
struct OpInput {
    const Node* node;
    const void* value;
};

// What it reads there, in numbers to compare.
struct InputIdentity {
    std::uint32_t version;  // of a buffer; 0 for a number
    std::uint64_t which;    // buffer, by its address; a number by its checksum
};

// Something that a rule will read.
struct SavedInput {
    const void* address;                     // null: not this time
    std::uint64_t (*checksum)(const void*);  // of labels, indices and conditions; null for other values
};

// An operation that was computed and is about to become a node.
class OpInfo {
public:
    const char* const op;
    const bool recorded;         // false: nobody can want its gradient, so it becomes a constant
    const void* const result;    // the address of its value
    const std::size_t operands;  // how many
    const std::span<const SavedInput> reads;
    const std::optional<std::uint64_t> constants;  // what its rule holds beside; empty: not known

    virtual OpInput operand(std::size_t which) const = 0;
    virtual InputIdentity contents(std::size_t which) const = 0;           // of an operand
    virtual memory::detail::Storage* buffer(std::size_t which) const = 0;  // where it lies; null for a number
    virtual std::uint64_t result_checksum() const = 0;
    virtual std::string describe_result() const = 0;
    virtual ValueInfo observed_result() const = 0;
    virtual void drop_result() = 0;

protected:
    OpInfo(const char* name, bool becomes_node, const void* value, std::size_t inputs,
           std::span<const SavedInput> read, std::optional<std::uint64_t> held)
        : op(name), recorded(becomes_node), result(value), operands(inputs), reads(read), constants(held) {}
    ~OpInfo() = default;
};

class Recorder {
public:
    // Says whether to go on as without a recorder; otherwise a placeholder is made. Either is the next node.
    virtual bool on_operation(OpInfo& operation) = 0;

protected:
    ~Recorder() = default;
};

}  // namespace tally::detail
