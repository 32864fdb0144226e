// SavedValues: what operations keep for the way back, why, and where in the program.
//
//     SavedValues kept;
//     const Here here;
//     const Tensor loss = model(x);
//     std::cout << to_string(kept);   // before loss.backward() lets go of it
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tally/autograd/node.hpp"
#include "tally/autograd/observer.hpp"

namespace tally {

// Looks on while it lives. Holds what operations recorded since then still keep: what a sweep has pulled is
// taken off the list. (A graph that is dropped without a sweep stays on it until its buffers are kept anew.)
class SavedValues final : Observer {
public:
    enum class Why : std::uint8_t {
        output,     // the operation's own result
        operand,    // or what was computed inside
        parameter,  // which is there anyway, as is
        gradient,   // this, and
        number      // this one, which lies in the node
    };
    struct Entry {
        std::string op;
        std::string where;  // see Here
        Shape shape;
        std::size_t bytes;  // of the buffer; several entries may share one
        Why why;
        bool counts;  // among the ledger's `saved`, and not kept already when this object began
        const memory::detail::Storage* storage;  // to compare, not to read: it may be gone
        std::uint64_t node;                      // its id
    };

    const std::vector<Entry>& entries() const { return entries_; }  // in the order of their operations
    std::size_t bytes() const;    // of distinct buffers that count: what `saved` has grown by
    std::size_t buffers() const;  // how many these are

private:
    void on_forward(const ForwardEvent& operation) override;
    void after_backward(const Node& node) override;

    std::vector<Entry> entries_;
    const ObserverScope scope_{*this};
};

std::string to_string(const SavedValues& kept);  // a table, one entry a line

}  // namespace tally
