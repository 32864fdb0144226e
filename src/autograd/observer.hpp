// For whoever wants to know what this thread's operations do: Profile, Timeline and SavedValues are told
// here. The graph knows nobody of them, and here its nodes are known by name only.
#pragma once

#include <cstddef>
#include <span>

#include "tally/array/shape.hpp"
#include "tally/kernels/device.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

class Node;

namespace detail {
// A value as it is reported: enough to describe it, not to change it.
struct ValueInfo {
    Shape shape;
    std::size_t bytes = 0;  // of its buffer, as the ledger counts them; a number's own size
    const memory::detail::Storage* storage = nullptr;  // null for numbers
    Device device = Device::cpu;
};

template <class T> ValueInfo observed(const T& x) {
    if constexpr (requires { x.storage(); })
        return {x.shape(), x.storage() ? x.storage()->bytes : 0, x.storage(), x.device()};
    else
        return {Shape(), sizeof x, nullptr, Device::cpu};
}
}  // namespace detail

// An operation that has just been computed; its operands have not been let go yet, and `node` does not
// name them yet.
struct ForwardEvent {
    const char* op;                           // for as long as the call lasts
    const Node* node;                         // null when nothing was recorded
    detail::ValueInfo value;                  // its result
    std::span<const detail::ValueInfo> kept;  // what its rule keeps for the way back
};

// Told of what this thread's operations do. An error that it throws is the operation's.
class Observer {
public:
    virtual ~Observer() = default;
    virtual void on_forward(const ForwardEvent&) {}
    virtual void before_backward(const Node&) {}  // a sweep is about to call this node's rule
    virtual void after_backward(const Node&) {}   // and has, or the rule has thrown
};

namespace detail {
// Bytes by which an operation raised the ledger's `saved`: of buffers that no rule kept before.
std::size_t newly_saved_bytes(const ForwardEvent& operation);
// How many rules kept this buffer already when the operation came.
std::size_t earlier_savers(const ForwardEvent& operation, const ValueInfo& kept);
// Bytes of the buffer that holds the result; none where it is an operand's.
std::size_t output_bytes(const ForwardEvent& operation);

// Tells this thread's observer, which may throw.
[[gnu::cold]] void notify_constant(const char* op, const ValueInfo& value);
}  // namespace detail

namespace watching::detail {
inline constinit thread_local Observer* observer = nullptr;  // of this thread; set by ObserverScope
}

// While one lives, an observer is told of what the thread does that made it, after those that were told
// already. They may end in any order.
class [[nodiscard]] ObserverScope final : Observer {
public:
    [[nodiscard]] explicit ObserverScope(Observer& observer)
        : observer_(observer), before_(watching::detail::observer) {
        watching::detail::observer = this;
    }
    ~ObserverScope() override {
        Observer** place = &watching::detail::observer;  // nothing but ObserverScopes are in this list
        while (*place && *place != this) place = &static_cast<ObserverScope*>(*place)->before_;
        if (*place) *place = before_;
    }
    ObserverScope(const ObserverScope&) = delete;
    ObserverScope& operator=(const ObserverScope&) = delete;

private:
    void on_forward(const ForwardEvent& operation) override {
        if (before_) before_->on_forward(operation);
        observer_.on_forward(operation);
    }
    void before_backward(const Node& node) override {
        if (before_) before_->before_backward(node);
        observer_.before_backward(node);
    }
    void after_backward(const Node& node) override {
        if (before_) before_->after_backward(node);
        observer_.after_backward(node);
    }

    Observer& observer_;
    Observer* before_;
};

}  // namespace tally
