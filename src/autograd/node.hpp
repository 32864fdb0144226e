// A node of the graph: what it made, what it is made of, and who still needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tally/array/gradient.hpp"
#include "tally/base/scoped_value.hpp"

namespace tally {

class Node;

namespace detail {
class BackwardPass;
class Recorder;

// A node only moves forward: constant and leaf stay what they are; fresh -> queued -> consumed.
enum class State : std::uint8_t { constant, leaf, fresh, queued, consumed };

// What belongs to the thread that records. A graph must be used where it was recorded.
struct ThreadContext {
    std::uint64_t next_id = 1;
    std::uint64_t nodes_destroyed = 0;
    std::uint32_t thread_id = 0;           // 0: not numbered yet, and nothing recorded
    std::uint32_t backward_passes = 0;     // that are on their way
    std::uint64_t backward_start_id = 0;   // what was made before the outermost of them has a smaller id
    bool recording = true;                 // false inside NoGrad
    bool keep_values = false;              // true inside KeepValues
    Recorder* recorder = nullptr;          // asked before an operation becomes a node (recorder.hpp)
    const Node* current_node = nullptr;    // the one whose rule is just being called
    Node** pending_destruction = nullptr;  // nodes that are just being dismantled, one after the other
};
inline constinit thread_local ThreadContext context;
std::uint32_t assign_thread_id();

inline std::uint32_t this_thread_id() { return context.thread_id ? context.thread_id : assign_thread_id(); }
}  // namespace detail

// What a variable refers to: a leaf, a constant, or what an operation has made.
class Node {
public:
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    virtual const char* op() const = 0;
    // Sends this node's gradient to its inputs, forgets them, and lets go of itself, which the sweep held;
    // when it throws the sweep still does.
    virtual void backward(detail::BackwardPass&) = 0;
    virtual void rollback_gradients() {}                      // what its rule has asked for, and thrown
    virtual void clear() {}                                   // lets go of inputs, saved values and gradient
    virtual std::vector<Node*> inputs() const { return {}; }  // for who looks on; null where nothing is held
    virtual void destroy(Node*& pending) = 0;                 // lets go of everything and frees itself

    // Creation order is a topological order: an input is always older, its id smaller.
    union {
        std::uint64_t id;
        Node* next_to_destroy;  // once nobody refers to it
    };
    std::uint32_t refs = 1;     // handles together count one, each newer node that reads it counts one
    std::uint32_t handles = 1;  // when the last handle goes, the value goes, unless a rule saved it
    std::uint32_t thread_id;
    detail::State state;
    mutable std::uint8_t grad_flags = 0;  // bits of grad_flag (gradient.hpp)
    bool is_grad_target = false;          // grad() asks for the gradient of this one
    bool keeps_values;                    // keep values and constants for whoever looks on

protected:
    // Leaves and constants come first and give the thread its number; an operation has inputs, hence
    // a numbered thread.
    explicit Node(detail::State s)
        : id(detail::context.next_id++),
          thread_id(s == detail::State::fresh ? detail::context.thread_id : detail::this_thread_id()),
          state(s),
          keeps_values(detail::context.keep_values) {}
    virtual ~Node() { ++detail::context.nodes_destroyed; }
};

namespace detail {
void destroy_iteratively(Node* pending);  // a loop, so that a chain of a million nodes needs no stack

inline void unref(Node* node) {
    if (--node->refs == 0) {
        node->next_to_destroy = nullptr;
        destroy_iteratively(node);
    }
}

// Inside destroy(): the input joins the list of the doomed instead of being freed recursively.
inline void unref(Node* node, Node*& pending) {
    if (--node->refs == 0) {
        node->next_to_destroy = pending;
        pending = node;
    }
}

[[noreturn]] void throw_wrong_thread(const char* what, const Node& node);
[[noreturn]] void throw_empty(const char* what);
[[noreturn]] void throw_inside_checkpoint();
[[noreturn]] void throw_bad_learning_rate(double rate);
void require_distinct(
    std::vector<std::pair<const Node*, std::size_t>> parameters);  // of a step, with their numbers
[[noreturn]] void throw_no_gradient(const Node& node, const std::string& form);
[[noreturn]] void throw_gradient_not_needed(std::size_t input);
[[noreturn]] void throw_no_gradient_written(const char* op, std::size_t input, const std::string& form);
[[noreturn]] void throw_no_such_input(std::size_t input, std::size_t count);
// Changing a leaf or its gradient while some backward() is on its way.
[[noreturn]] void throw_during_backward(const char* what);
}  // namespace detail

// Graph nodes alive in this thread, leaves and constants included.
inline std::int64_t live_nodes() {
    return static_cast<std::int64_t>(detail::context.next_id - 1 - detail::context.nodes_destroyed);
}

// While one lives, operations on this thread compute values and record nothing.
struct [[nodiscard]] NoGrad : private detail::ScopedValue<bool> {
    [[nodiscard]] NoGrad() : ScopedValue(detail::context.recording, false) {}
};

// While one lives, recorded nodes keep their values and their constant inputs, so that a picture
// can show them.
struct [[nodiscard]] KeepValues : private detail::ScopedValue<bool> {
    [[nodiscard]] KeepValues() : ScopedValue(detail::context.keep_values, true) {}
};

}  // namespace tally
