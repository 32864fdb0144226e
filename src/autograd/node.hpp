// A Node represents one value of the graph and refers to the inputs of the operation that computed the value.
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
class Interceptor;

// The state of constants and leaves never changes. A result is first fresh, then queued, then consumed.
enum class State : std::uint8_t { constant, leaf, fresh, queued, consumed };

// Small members of a Node. A result copies them at once from the context of its thread, in which only the
// thread id and keeps_values ever change.
struct alignas(8) NodeHeader {
    std::uint32_t thread_id = 0;  // 0: not assigned yet
    State state = State::fresh;
    mutable std::uint8_t grad_flags = 0;  // bits of grad_flag (gradient.hpp)
    bool is_grad_target = false;          // a target of grad(); sgd_step() also uses it to find duplicates
    bool keeps_values = false;            // recorded inside KeepValues
};

// ThreadContext stores the recording state of a thread. A graph must be used in the thread that recorded it.
struct ThreadContext : NodeHeader {
    std::uint64_t next_id = 1;
    std::uint64_t nodes_destroyed = 0;
    std::uint32_t backward_passes = 0;     // running now; a backward function may start another pass
    std::uint64_t backward_start_id = 0;   // next_id when the outermost backward pass started
    bool recording = true;                 // false inside NoGrad
    Interceptor* interceptor = nullptr;    // sees each operation before it becomes a node (interceptor.hpp)
    const Node* current_node = nullptr;    // operation whose backward function was called last in this pass
    Node** pending_destruction = nullptr;  // the list that destroy_iteratively() is processing
};
inline constinit thread_local ThreadContext context;
std::uint32_t assign_thread_id();

inline std::uint32_t this_thread_id() { return context.thread_id ? context.thread_id : assign_thread_id(); }
}  // namespace detail

// A Var is a handle to a Node. The Node is a leaf, a constant or the result of an operation.
class Node : public detail::NodeHeader {
public:
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    virtual const char* op() const = 0;
    virtual std::vector<Node*> inputs() const { return {}; }  // null for an input that was dropped
    // Counts the nodes alive in this thread, including leaves and constants.
    static std::int64_t live_count() {
        return static_cast<std::int64_t>(detail::context.next_id - 1 - detail::context.nodes_destroyed);
    }
    // ---- for the engine ----
    bool received_gradient() const { return grad_flags & grad_flag::present; }
    // Queues the inputs that need a gradient, and runs the backward function. Then drops the inputs, the saved
    // values and the reference of the BackwardPass to this node. If the backward function throws,
    // BackwardPass::run() drops this reference instead.
    virtual void backward(detail::BackwardPass&) = 0;
    // Clears the leaf gradients that a backward function created before it threw. Other gradients stay.
    virtual void clear_first_writes() {}
    virtual void release() {}  // drops inputs, saved values and, unless grad() returns it, the gradient
    // Frees this node, and adds inputs without remaining references to the list `pending`.
    virtual void destroy(Node*& pending) = 0;

    // Ids order the graph topologically, because an input is created before the nodes that use the input.
    union {
        std::uint64_t id;
        Node* next_to_destroy;  // replaces the id after the last reference is dropped
    };
    std::uint32_t refs = 1;     // 1 for all handles together, 1 per node that uses this one, 1 while queued
    std::uint32_t handles = 1;  // the last handle frees the value, unless it is saved for a backward function

protected:
    // Only leaves and constants assign a thread id. A result finds the id assigned, because its input did so.
    explicit Node(detail::State s) : NodeHeader(detail::context), id(detail::context.next_id++) {
        if (s == detail::State::fresh) return;
        thread_id = detail::this_thread_id();
        state = s;
    }
    virtual ~Node() { ++detail::context.nodes_destroyed; }
};

namespace detail {
// Destroys nodes in a loop, because recursion through a million nodes would overflow the stack.
void destroy_iteratively(Node* pending);

inline void unref(Node* node) {
    if (--node->refs == 0) {
        node->next_to_destroy = nullptr;
        destroy_iteratively(node);
    }
}

// Use this unref() in destroy(). destroy_iteratively() frees the nodes of `pending`, so calls do not nest.
inline void unref(Node* node, Node*& pending) {
    if (--node->refs == 0) {
        node->next_to_destroy = pending;
        pending = node;
    }
}

[[noreturn]] void throw_wrong_thread(const char* call, const Node& node);
[[noreturn]] void throw_empty(const char* call);
[[noreturn]] void throw_inside_checkpoint();
[[noreturn]] void throw_bad_learning_rate(double rate);
// Throws if two parameters of an sgd_step() are the same node. Each pair is a node and its index.
void require_distinct(std::vector<std::pair<const Node*, std::size_t>> parameters);
[[noreturn]] void throw_no_gradient(const Node& node, const std::string& description);
[[noreturn]] void throw_gradient_not_needed(std::size_t input);
[[noreturn]] void throw_no_gradient_written(const char* op, std::size_t input,
                                            const std::string& description);
[[noreturn]] void throw_no_such_input(std::size_t input, std::size_t count);
[[noreturn]] void throw_during_backward(const char* call);
}  // namespace detail

// A NoGrad stops recording on its thread during its lifetime, but operations still compute values.
struct [[nodiscard]] NoGrad : private detail::ScopedValue<bool> {
    [[nodiscard]] NoGrad() : ScopedValue(detail::context.recording, false) {}
};

namespace detail {
// While a KeepValues exists, new nodes keep their values and constant inputs, so that the graph can be drawn.
struct [[nodiscard]] KeepValues : private ScopedValue<bool> {
    [[nodiscard]] KeepValues() : ScopedValue(context.keeps_values, true) {}
};
}  // namespace detail

}  // namespace tally
