// An Interceptor sees each operation of a thread before the operation becomes a node, as in checkpoint().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tally/autograd/observer.hpp"

namespace tally::detail {

// OpInput is an input of an operation, with the address of the input's value.
struct OpInput {
    const Node* node;
    const void* value;
};

// The value of an input is unchanged if its InputIdentity is unchanged.
struct InputIdentity {
    std::uint32_t version;             // of the buffer; 0 for a number
    std::uint64_t buffer_or_checksum;  // the address of the buffer, or the checksum of a number
};

// SavedRef refers to one argument of save(), which the backward function may read.
struct SavedRef {
    const void* address;                     // null if the value is not needed
    std::uint64_t (*checksum)(const void*);  // for integer arrays (labels, indices, conditions); else null
};

// OpInfo describes an operation whose result was computed.
class OpInfo {
public:
    const char* const op;
    const bool needs_grad;     // if it is false, the result becomes a constant
    const void* const result;  // the address of the result
    const std::size_t input_count;
    const std::span<const SavedRef> saved;
    const std::optional<std::uint64_t> captures_checksum;  // of what the backward function captured, if known

    // `which` is the index of an input.
    virtual OpInput input(std::size_t which) const = 0;
    virtual InputIdentity identity(std::size_t which) const = 0;
    virtual memory::detail::Storage* buffer(std::size_t which) const = 0;  // null for a number
    virtual std::uint64_t input_checksum(std::size_t which) const = 0;
    // Reads all bytes, or only a sample if `sample` has a value; see sampled_checksum_of().
    virtual std::uint64_t result_checksum(std::optional<unsigned> sample) const = 0;
    virtual std::string describe_result() const = 0;
    virtual ValueInfo result_info() const = 0;
    virtual void drop_result() = 0;

protected:
    OpInfo(const char* name, bool result_needs_grad, const void* result_address, std::size_t inputs,
           std::span<const SavedRef> saved_refs, std::optional<std::uint64_t> checksum)
        : op(name),
          needs_grad(result_needs_grad),
          result(result_address),
          input_count(inputs),
          saved(saved_refs),
          captures_checksum(checksum) {}
    ~OpInfo() = default;
};

class Interceptor {
public:
    // Returns false if a proxy must replace the node. The node or proxy receives the id context.next_id.
    virtual bool on_operation(OpInfo& operation) = 0;

protected:
    ~Interceptor() = default;
};

}  // namespace tally::detail
