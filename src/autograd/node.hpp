// A node of the graph, and the sweep that is all of backward: newest first, each node once, no recursion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/error.hpp"
#include "autograd/memory.hpp"
#include "autograd/pool.hpp"

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
[[noreturn]] void fail_gradient_form(const std::string& value, const std::string& gradient);

// Nodes waiting to be pulled; the newest comes first. Nearly always a handful, kept sorted; what is older
// than all of these spills into a heap.
class Sweep {
public:
    using Visitor = std::function<void(Node&)>;

    // With an oldest target, only targets receive gradients, and what lies below that one is left alone.
    explicit Sweep(std::uint64_t oldest_target = 0, const Visitor* visitor = nullptr)
        : oldest_target_(oldest_target), visitor_(visitor) {
        if (context.sweeps++ == 0) context.swept_from = context.next_id;
    }
    Sweep(const Sweep&) = delete;
    Sweep& operator=(const Sweep&) = delete;
    ~Sweep() {
        --context.sweeps;
        if (waits()) [[unlikely]]
            give_up();
    }

    // Says whether an input will receive a gradient; one that was computed then waits for its turn.
    [[gnu::always_inline]] bool reaches(Node* node) {
        const State state = node->state;  // no switch: a jump through a table costs more than all of this
        if (state == State::fresh && node->id > oldest_target_) [[likely]] {
            node->state = State::queued;
            ++node->refs;
            insert(node);
            return true;
        }
        if (state == State::leaf) {
            node->touched &= static_cast<std::uint8_t>(~touch::asked);  // by the rules before this one
            return oldest_target_ == 0 || node->target;
        }
        if (state == State::queued) return true;
        if (state == State::constant) return false;
        if (node->id > oldest_target_) refuse(node);  // spent
        return node->target;
    }
    void run();  // until nothing waits

    [[noreturn]] static void refuse(const Node* node);  // spent

private:
    [[gnu::always_inline]] void insert(Node* node) {
        if (near_count_ == 0 ? heap_.empty()
                             : near_count_ < near_size && near_[near_count_ - 1]->id < node->id) [[likely]]
            near_[near_count_++] = node;
        else
            insert_below(node);
    }
    void insert_below(Node* node);
    void spill(Node* node);
    void give_up();
    bool waits() const { return near_count_ || !heap_.empty(); }
    Node* newest() { return near_count_ ? near_[--near_count_] : newest_of_heap(); }
    [[gnu::cold]] Node* newest_of_heap();
    void pull_and_tell(Node& node);

    static constexpr std::size_t near_size = 32;
    std::array<Node*, near_size> near_;  // oldest first; `near_count_` of them
    std::size_t near_count_ = 0;
    std::vector<Node*> heap_;
    std::uint64_t oldest_target_;
    const Visitor* visitor_;
};

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
