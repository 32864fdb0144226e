// A node of the graph: what it made, what it is made of, and who still needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tally/array/gradient.hpp"
#include "tally/base/meanwhile.hpp"

namespace tally {

class Node;

namespace detail {

class Sweep;
class Recorder;

// A node only moves forward: constant and leaf stay what they are; fresh -> queued -> spent.
enum class State : std::uint8_t { constant, leaf, fresh, queued, spent };

// What belongs to the thread that records. A graph must be used where it was recorded.
struct ThreadContext {
    std::uint64_t next_id = 1;
    std::uint64_t dismantled = 0;
    std::uint32_t thread = 0;      // 0: not numbered yet, and nothing recorded
    std::uint32_t sweeps = 0;      // that are on their way
    std::uint64_t swept_from = 0;  // what was made before the outermost of them has a smaller id
    bool recording = true;         // false inside NoGrad
    bool watching = false;         // true inside Watch
    Recorder* recorder = nullptr;  // asked before an operation becomes a node (watching/recorder.hpp)
    const Node* pulled = nullptr;  // the one whose rule is just being called
    Node** doomed = nullptr;       // nodes that are just being dismantled, one after the other
};
inline constinit thread_local ThreadContext context;
std::uint32_t number_this_thread();

inline std::uint32_t this_thread() { return context.thread ? context.thread : number_this_thread(); }

}  // namespace detail

// What a variable refers to: a leaf, a constant, or what an operation has made.
class Node {
public:
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    virtual const char* op() const = 0;
    // Sends this node's gradient to its inputs, forgets them, and lets go of itself, which the sweep held;
    // when it throws the sweep still does.
    virtual void pull(detail::Sweep&) = 0;
    virtual void take_back() {}                               // what its rule has asked for, and thrown
    virtual void forget() {}                                  // lets go of inputs, saved values and gradient
    virtual std::vector<Node*> inputs() const { return {}; }  // for who looks on; null where nothing is held
    virtual void dismantle(Node*& doomed) = 0;                // lets go of everything and frees itself

    // Creation order is a topological order: an input is always older, its id smaller.
    union {
        std::uint64_t id;
        Node* next_doomed;  // once nobody refers to it
    };
    std::uint32_t refs = 1;     // handles together count one, each newer node that reads it counts one
    std::uint32_t handles = 1;  // when the last handle goes, the value goes, unless a rule saved it
    std::uint32_t thread;
    detail::State state;
    mutable std::uint8_t touched = 0;  // bits of touch (gradient.hpp)
    bool target = false;               // grad() asks for the gradient of this one
    bool watched;                      // keep values and constants for whoever looks on

protected:
    // Leaves and constants come first and give the thread its number; an operation has inputs, hence
    // a numbered thread.
    explicit Node(detail::State s)
        : id(detail::context.next_id++),
          thread(s == detail::State::fresh ? detail::context.thread : detail::this_thread()),
          state(s),
          watched(detail::context.watching) {}
    virtual ~Node() { ++detail::context.dismantled; }
};

namespace detail {

void dismantle_all(Node* doomed);  // a loop, so that a chain of a million nodes needs no stack

inline void let_go_of(Node* node) {
    if (--node->refs == 0) {
        node->next_doomed = nullptr;
        dismantle_all(node);
    }
}

// Inside dismantle(): the input joins the list of the doomed instead of being freed recursively.
inline void let_go_of(Node* node, Node*& doomed) {
    if (--node->refs == 0) {
        node->next_doomed = doomed;
        doomed = node;
    }
}

[[noreturn]] void refuse_thread(const char* what, const Node& node);
[[noreturn]] void refuse_empty(const char* what);
[[noreturn]] void refuse_placeholder();
[[noreturn]] void refuse_learning_rate(double rate);
void expect_each_once(
    std::vector<std::pair<const Node*, std::size_t>> parameters);  // of a step, with their numbers
[[noreturn]] void refuse_untouched(const Node& node, const std::string& form);
[[noreturn]] void refuse_unwanted(std::size_t input);
[[noreturn]] void refuse_forgotten(const char* op, std::size_t input, const std::string& form);
[[noreturn]] void refuse_number(std::size_t input, std::size_t count);
// Changing a leaf or its gradient while some backward() is on its way.
[[noreturn]] void refuse_in_sweep(const char* what);

}  // namespace detail

// Graph nodes alive in this thread, leaves and constants included.
inline std::int64_t live_nodes() {
    return static_cast<std::int64_t>(detail::context.next_id - 1 - detail::context.dismantled);
}

// While one lives, operations on this thread compute values and record nothing.
struct [[nodiscard]] NoGrad : private detail::Meanwhile<bool> {
    [[nodiscard]] NoGrad() : Meanwhile(detail::context.recording, false) {}
};

// While one lives, recorded nodes keep their values and their constant inputs, so that a picture
// can show them.
struct [[nodiscard]] Watch : private detail::Meanwhile<bool> {
    [[nodiscard]] Watch() : Meanwhile(detail::context.watching, true) {}
};

}  // namespace tally
