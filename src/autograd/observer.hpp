// An Observer is notified of the operations of its thread. Profile, Timeline and SavedValues are observers.
#pragma once

#include <cstddef>
#include <span>

#include "tally/array/shape.hpp"
#include "tally/kernels/device.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

class Node;

namespace detail {
struct ValueInfo {
    Shape shape;
    std::size_t bytes = 0;  // the bytes of the buffer in memory accounting, or the size of the number
    const memory::detail::Storage* storage = nullptr;  // null for numbers
    Device device = Device::cpu;
};

template <class T> ValueInfo value_info(const T& x) {
    if constexpr (requires { x.storage(); })
        return {x.shape(), x.storage() ? x.storage()->bytes : 0, x.storage(), x.device()};
    else
        return {Shape(), sizeof x, nullptr, Device::cpu};
}

// ForwardEvent describes an operation that has just run. The operands still exist. node->inputs() is empty or
// has null pointers, except for a checkpoint, because an operation gets its inputs after the notification.
struct ForwardEvent {
    const char* op;                            // valid during the notification only
    const Node* node;                          // null if nothing was recorded
    detail::ValueInfo value;                   // the result
    std::span<const detail::ValueInfo> saved;  // the values saved for the backward function
};
}  // namespace detail

// Observers derive from Observer. If a member function throws, the observed call throws the same error.
class Observer {
public:
    using ForwardEvent = detail::ForwardEvent;
    class Scope;

    virtual ~Observer() = default;
    virtual void on_forward(const ForwardEvent&) {}  // after each operation that computes, recorded or not
    virtual void before_backward(const Node&) {}     // called before the node's backward function
    virtual void after_backward(const Node&) {}      // called after that function, even if it threw
};

namespace detail {
// Returns the bytes of the buffers that this operation was the first to save.
std::size_t newly_saved_bytes(const ForwardEvent& operation);
// Returns how many times operations other than `operation` have saved the buffer of `value`.
std::size_t other_save_count(const ForwardEvent& operation, const ValueInfo& value);
// Returns the bytes of the result's buffer, or 0 if the result shares the buffer of an operand.
std::size_t output_bytes(const ForwardEvent& operation);

// Notifies the observer of a constant result or of an operation in a checkpoint. The observer may throw.
[[gnu::cold]] void notify_without_node(const char* op, const ValueInfo& value);
}  // namespace detail

namespace instrumentation::detail {
inline constinit thread_local Observer* observer = nullptr;  // set by Observer::Scope
}

// Observer::Scope adds an observer to this thread for its lifetime. Observers that were added first are
// notified first. Several scopes may end in any order.
class [[nodiscard]] Observer::Scope final : Observer {
public:
    [[nodiscard]] explicit Scope(Observer& observer)
        : observer_(observer), previous_(instrumentation::detail::observer) {
        instrumentation::detail::observer = this;
    }
    ~Scope() override {
        Observer** link = &instrumentation::detail::observer;  // all observers in this list are scopes
        while (*link && *link != this) link = &static_cast<Scope*>(*link)->previous_;
        if (*link) *link = previous_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

private:
    void on_forward(const ForwardEvent& operation) override {
        if (previous_) previous_->on_forward(operation);
        observer_.on_forward(operation);
    }
    void before_backward(const Node& node) override {
        if (previous_) previous_->before_backward(node);
        observer_.before_backward(node);
    }
    void after_backward(const Node& node) override {
        if (previous_) previous_->after_backward(node);
        observer_.after_backward(node);
    }

    Observer& observer_;
    Observer* previous_;
};

}  // namespace tally
