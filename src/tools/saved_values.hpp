// A `SavedValues` lists the values that operations save for backward, with reasons and places in the program.
//
//     SavedValues kept;
//     const ScopeName here;
//     const Tensor loss = model(x);
//     std::cout << to_string(kept);   // before loss.backward() frees the values
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tally/autograd/node.hpp"
#include "tally/autograd/observer.hpp"

namespace tally {

// Lists the values that operations save while the object exists. A backward function removes the entries of
// its operation. Without a backward pass, the entries remain until the buffers are saved again.
class SavedValues final : Observer {
public:
    enum class Why : std::uint8_t {
        output,     // the operation's own result
        operand,    // an operand, or a value computed inside the operation
        parameter,  // not counted: held anyway
        gradient,   // not counted: held anyway
        number      // not counted: stored in the node
    };
    struct Entry {
        std::string op;
        std::string where;  // see ScopeName
        Shape shape;
        std::size_t bytes;  // bytes of the buffer, which several entries may share
        Why why;
        bool counts;                             // in class `saved`, and not saved before this object began
        const memory::detail::Storage* storage;  // only to compare, because the storage may be freed
        std::uint64_t node;                      // id of the node
    };

    const std::vector<Entry>& entries() const { return entries_; }  // in the order of their operations
    std::size_t bytes() const;    // bytes of the distinct counted buffers: the growth of memory class `saved`
    std::size_t buffers() const;  // number of these buffers

private:
    void on_forward(const ForwardEvent& operation) override;
    void after_backward(const Node& node) override;

    std::vector<Entry> entries_;
    const Observer::Scope scope_{*this};
};

std::string to_string(const SavedValues& kept);  // returns a table with a line for each entry

}  // namespace tally
