// A node of the graph: what it made, what it is made of, and who still needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tally/base/error.hpp"
#include "tally/memory/memory.hpp"
#include "tally/memory/pool.hpp"

namespace tally {

class Sweep;
class Node;
class Recorder;
class Onlooker;

// A node only moves forward: constant and leaf stay what they are; fresh -> queued -> spent.
enum class State : std::uint8_t { constant, leaf, fresh, queued, spent };

// What is checked (check.hpp): nothing; what comes from outside, which are the rules of custom() and pointers
// kept from writable(), without a byte of the ledger; or every rule.
enum class Checks : std::uint8_t { none, outside, all };

// Whether a gradient has arrived; and of a leaf whose gradient a window gathers, what others may not do.
namespace touch {
inline constexpr std::uint8_t arrived = 1;
inline constexpr std::uint8_t held = 2;    // change it, clear it or step
inline constexpr std::uint8_t sealed = 4;  // go backward into it
inline constexpr std::uint8_t met = 8;     // one has gone, since the window looked
inline constexpr std::uint8_t asked = 16;  // for its place by a rule that sets it; of a leaf, the last
}  // namespace touch

// What belongs to the thread that records. A graph must be used where it was recorded.
struct ThreadContext {
    std::uint64_t next_id = 1;
    std::uint64_t dismantled = 0;
    std::uint32_t thread = 0;      // 0: not numbered yet, and nothing recorded
    std::uint32_t sweeps = 0;      // that are on their way
    std::uint64_t swept_from = 0;  // what was made before the outermost of them has a smaller id
    bool recording = true;         // false inside NoGrad
    bool watching = false;         // true inside Watch
    Checks checks = Checks::none;  // `outside` once a debug build has numbered the thread
    bool trying = true;            // false: the rule that is called next cannot be tried (check.hpp)
    std::uint8_t lifted = 0;       // of touch::held and sealed: what does not hold now, inside Lift
    Recorder* recorder = nullptr;  // asked before an operation becomes a node (recorder.hpp)
    Onlooker* onlooker = nullptr;  // set by LookOn
    const Node* pulled = nullptr;  // the one whose rule is just being called
    Node** doomed = nullptr;       // nodes that are just being dismantled, one after the other
};
inline constinit thread_local ThreadContext context;
std::uint32_t number_this_thread();

inline Checks set_checks(Checks checks) {  // returns what was set before
    memory::sum_saved = checks != Checks::none;
    return std::exchange(context.checks, checks);
}

// What a rule on trial (check.hpp) belongs to: it may make graphs of its own, but touch none that was there.
inline constexpr std::uint32_t thread_on_trial = ~std::uint32_t{0};
class OnTrial : public Error {
    using Error::Error;
};

inline std::uint32_t this_thread() { return context.thread ? context.thread : number_this_thread(); }

class Node {
public:
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    virtual const char* op() const = 0;
    // Sends this node's gradient to its inputs, forgets them, and lets go of itself, which the sweep held;
    // when it throws the sweep still does.
    virtual void pull(Sweep&) = 0;
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
    State state;
    std::uint8_t touched = 0;  // bits of touch
    bool target = false;       // grad() asks for the gradient of this one
    bool watched;              // keep values and constants for whoever looks on

protected:
    // Leaves and constants come first and give the thread its number; an operation has inputs, hence
    // a numbered thread.
    explicit Node(State s)
        : id(context.next_id++),
          thread(s == State::fresh ? context.thread : this_thread()),
          state(s),
          watched(context.watching) {}
    virtual ~Node() { ++context.dismantled; }
};

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
[[noreturn]] void refuse_draft();
[[noreturn]] void refuse_unwanted(std::size_t input);
[[noreturn]] void refuse_number(std::size_t input, std::size_t count);
// Changing a leaf or its gradient while some backward() is on its way.
[[noreturn]] void refuse_in_sweep(const char* what);
[[noreturn]] void refuse_held(const char* what, const std::string& parameter);

// Graph nodes alive in this thread, leaves and constants included.
inline std::int64_t live_nodes() {
    return static_cast<std::int64_t>(context.next_id - 1 - context.dismantled);
}

// While one lives, operations on this thread compute values and record nothing.
class NoGrad {
public:
    NoGrad() : before_(std::exchange(context.recording, false)) {}
    ~NoGrad() { context.recording = before_; }
    NoGrad(const NoGrad&) = delete;
    NoGrad& operator=(const NoGrad&) = delete;

private:
    bool before_;
};

// While one lives, what a window holds can be changed, by the window itself: touch::held, sealed.
class Lift {
public:
    explicit Lift(std::uint8_t what) : before_(context.lifted) { context.lifted |= what; }
    ~Lift() { context.lifted = before_; }
    Lift(const Lift&) = delete;
    Lift& operator=(const Lift&) = delete;

private:
    std::uint8_t before_;
};

// While one lives, recorded nodes keep their values and their constant inputs, so that a picture
// can show them.
class Watch {
public:
    Watch() : before_(std::exchange(context.watching, true)) {}
    ~Watch() { context.watching = before_; }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

private:
    bool before_;
};

}  // namespace tally
