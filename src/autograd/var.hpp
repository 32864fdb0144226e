// Var<T>: a value that remembers how it was made; backward() and grad().
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/array/deferred_weight_grad.hpp"
#include "tally/array/shape.hpp"
#include "tally/array/value.hpp"
#include "tally/autograd/backward_pass.hpp"
#include "tally/base/error.hpp"
#include "tally/memory/pool.hpp"

namespace tally {

namespace detail {
// A node with its value and its gradient; by itself a leaf or a constant.
template <class T> class ValueNode : public Node {
public:
    [[gnu::always_inline]] ValueNode(T&& v, detail::State s)
        : Node(s), gradient(detail::like_without_memory(v)), value(std::move(v)) {}

    // Asked for immediately before the kernel that writes: the first contribution sets, each later one adds.
    [[gnu::always_inline]] Into<T> into() {
        if constexpr (!Number<T>)
            if (grad_flags & grad_flag::locked) [[unlikely]]
                detail::before_write_to_locked(*this);
        if (view().is_present()) {
            detail::make_unique_buffer(gradient);  // a buffer shared with somebody else is not written to
            return {gradient, Write::add};
        }
        grad_flags |= grad_flag::present;
        return {gradient, Write::set};
    }

    bool has_gradient() const { return detail::has_gradient_flushed(view()); }
    void clear_gradient() { detail::clear_gradient(view()); }
    [[gnu::always_inline]] detail::GradientView<T> view() const { return {&gradient, &value, &grad_flags}; }
    const char* op() const override { return state == detail::State::leaf ? "parameter" : "constant"; }
    void backward(detail::BackwardPass&) override { detail::unref(this); }
    void destroy(Node*&) override {
        this->~ValueNode();
        pool::give(this, sizeof *this);
    }

    mutable T gradient;  // its memory comes with the first write; of an inner node only during the sweep
    T value;             // let go when nobody holds a handle
};

// Asked before a leaf's value or gradient is changed by anything but a sweep.
template <class T>
[[gnu::always_inline]] inline void require_unlocked(const char* what, const ValueNode<T>& of) {
    if (context.backward_passes && of.id < context.backward_start_id) [[unlikely]]
        throw_during_backward(what);
    if (is_locked(of.grad_flags)) [[unlikely]]
        throw_locked(what, describe(of.value));
}
}  // namespace detail

// What a rule writes to: the gradients of its operation's inputs.
template <class T> class GradInputs {
public:
    GradInputs(detail::ValueNode<T>* const* inputs, std::size_t count, bool can_reuse_dy)
        : inputs_(inputs), count_(static_cast<std::uint32_t>(count)), can_reuse_dy_(can_reuse_dy) {}
    // Nobody but the rule will read dy: what is written last may be written over it.
    bool can_reuse_dy() const { return can_reuse_dy_; }
    bool needs_grad(std::size_t input) const {
        if (input >= count_) [[unlikely]]
            detail::throw_no_such_input(input, count_);
        return inputs_[input] != nullptr;
    }
    [[gnu::always_inline]] Into<T> into(std::size_t input) const {
        if (!needs_grad(input)) detail::throw_gradient_not_needed(input);
        const Into<T> place = inputs_[input]->into();
        if (place.how == Write::set) inputs_[input]->grad_flags |= grad_flag::first_write;
        return place;
    }
    detail::GradientView<T> view(std::size_t input) const { return inputs_[input]->view(); }
    // Hands over a gradient that is already there; what is the first of an inner node is not copied.
    void add(std::size_t input, const T& gradient) const {
        if (!detail::has_memory(gradient)) detail::throw_empty("gradient");
        if (needs_grad(input) && !try_add(input, gradient))
            detail::fail_gradient_form(detail::describe(inputs_[input]->value), detail::describe(gradient));
    }
    // The same for a gradient that may have another form; says whether it was handed over.
    bool try_add(std::size_t input, const T& gradient) const {
        if (!detail::same_shape_and_device(inputs_[input]->value, gradient)) return false;
        accumulate_into(into(input), gradient);
        return true;
    }

private:
    detail::ValueNode<T>* const* inputs_;  // two words in all, which travel in registers
    std::uint32_t count_;
    bool can_reuse_dy_;
};

template <detail::Value T> class Var;

namespace detail {
template <class T> struct VisitedNode {  // what an observer of the sweep sees: a node about to be pulled
    const Node& node;
    const T& value;  // let go already, unless a handle or a KeepValues keeps it
    const T& gradient;
};
}  // namespace detail

template <detail::Value T> class [[nodiscard]] Var {
public:
    using value_type = T;

    Var() = default;
    [[gnu::always_inline]] Var(T value) : Var(std::move(value), detail::State::constant) {}
    [[gnu::always_inline]] Var(T value, detail::State state) {
        if (!detail::has_memory(value)) detail::throw_empty("variable");
        node_ = new (pool::take(sizeof(detail::ValueNode<T>))) detail::ValueNode<T>(std::move(value), state);
    }
    explicit Var(detail::ValueNode<T>* node) : node_(node) {}

    Var(const Var& other) : node_(other.node_) {
        if (!node_) return;
        check_thread("copy", *node_);  // handles are counted without a lock
        ++node_->handles;
    }
    Var(Var&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    Var& operator=(Var other) & noexcept {
        std::swap(node_, other.node_);
        return *this;
    }
    template <class Other> void operator=(const Other&) && { not_in_place<Other>(); }  // x[0] = y
    // It would make a constant of what was a parameter.
    template <class Plain>
    requires(std::same_as<std::remove_cvref_t<Plain>, T> && !detail::Number<T>) Var& operator=(Plain&&) & {
        static_assert(!sizeof(Plain),
                      "numbers are given to a parameter by assign(parameter, numbers); to make a variable "
                      "a constant write variable = constant(numbers)");
    }
    [[gnu::always_inline]] ~Var() {
        if (node_ && --node_->handles == 0) drop(node_);
    }
    template <class Other> void operator+=(const Other&) { not_in_place<Other>(); }
    template <class Other> void operator-=(const Other&) { not_in_place<Other>(); }
    template <class Other> void operator*=(const Other&) { not_in_place<Other>(); }
    template <class Other> void operator/=(const Other&) { not_in_place<Other>(); }

    explicit operator bool() const { return node_ != nullptr; }
    const T& value() const& { return checked("value").value; }
    T value() const&& { return checked("value").value; }  // a temporary's value outlives it
    auto item() const {                                   // the only element
        return detail::item(value());
    }
    const Shape& shape() const& { return detail::shape_of(value()); }
    Shape shape() const&& { return detail::shape_of(checked("shape").value); }
    // x[i]: the i-th along the first axis, which goes; -1 is the last. x.t(): the last two axes swapped. (ops/shape.hpp)
    Var operator[](std::int64_t i) const requires(!detail::Number<T>) { return at(*this, i); }
    Var t() const requires(!detail::Number<T>) { return transpose(*this); }
    bool requires_grad() const { return node_ && node_->state != detail::State::constant; }

    // ---- the gradient of a leaf ----
    bool has_grad() const { return node_ && node_->has_gradient(); }
    [[nodiscard]] const T& grad() const& {
        const detail::ValueNode<T>& node = checked("grad");
        if (!node.has_gradient()) detail::throw_no_gradient(node, detail::describe(node.value));
        detail::mark_escaped(node.grad_flags);
        return node.gradient;
    }
    [[nodiscard]] T grad() const&& { return grad(); }
    void zero_grad() const {
        mutable_leaf("zero_grad").clear_gradient();
    }  // its buffer stays for the next window
    void free_grad() const {
        detail::ValueNode<T>& node = mutable_leaf("free_grad");
        node.clear_gradient();
        detail::reset(node.gradient);
    }
    // In place, for optimizers: f(value, gradient) writes through value.writable(). Whoever saved the value
    // for a backward pass will notice.
    template <class F> void update(F f) const {
        if (leaf("update").has_gradient())
            modify_value([&](T& value) { f(value, std::as_const(node_->gradient)); }, "update");
    }
    // The same of any parameter, whether a gradient has reached it or not: f(value).
    template <class F> void modify_value(F f, const char* what = "modify_value") const {
        detail::ValueNode<T>& node = leaf(what);
        detail::require_unlocked(what, node);
        detail::require_own_value(what, node.grad_flags);
        detail::before_in_place_update(node.value);
        modify_in_place(what, f, &detail::ValueNode<T>::value);
    }
    // f(gradient) in place, where one has arrived; whoever holds a copy of it keeps what it had.
    template <class F> void modify_grad(F f) const {
        detail::ValueNode<T>& node = leaf("modify_grad");
        detail::require_unlocked("modify_grad", node);
        if (!node.has_gradient()) return;
        detail::account_as(node.gradient, MemoryClass::gradient);
        modify_in_place("modify_grad", f, &detail::ValueNode<T>::gradient);
    }

    // ---- backward ----
    void backward() const { start("backward", nullptr); }
    void backward(const T& seed) const { start("backward", &seed); }
    template <std::invocable<const detail::VisitedNode<T>&> Observer>
    void backward(const Observer& observer) const {
        const auto visit = [](const void* who, Node& node) {
            const auto& seen = static_cast<const detail::ValueNode<T>&>(node);
            (*static_cast<const Observer*>(who))(detail::VisitedNode<T>{seen, seen.value, seen.gradient});
        };
        const detail::BackwardPass::Hook hook{visit, &observer};
        start("backward", nullptr, 0, &hook);
    }

    detail::ValueNode<T>* node() const { return node_; }
    // Nobody will read this result's value once its last handle, which this is, has gone; a rule may
    // keep it, though.
    bool is_last_handle() const {
        return node_ && node_->handles == 1 && node_->state == detail::State::fresh && !node_->keeps_values;
    }
    // Turns a handle into a newer node's reference; the value goes with the last handle.
    [[gnu::always_inline]] detail::ValueNode<T>* into_node(bool held) && {
        detail::ValueNode<T>* node = std::exchange(node_, nullptr);
        if (--node->handles > 0) {
            if (held) ++node->refs;
            return held ? node : nullptr;
        }
        if (held) {
            if (!node->keeps_values) detail::reset(node->value);
            return node;
        }
        detail::unref(node);
        return nullptr;
    }
    detail::ValueNode<T>& checked(const char* what) const {
        if (!node_) [[unlikely]]
            detail::throw_empty(what);
        return *node_;
    }
    void start(const char* what, const T* seed, std::uint64_t oldest_target = 0,
               const detail::BackwardPass::Hook* hook = nullptr) const;
    static void check_thread(const char* what, const Node& node) {
        if (node.thread_id != detail::context.thread_id) [[unlikely]]
            detail::throw_wrong_thread(what, node);
    }

private:
    template <class Other> static constexpr void not_in_place() {
        static_assert(
            !sizeof(Other),
            "a variable is not changed in place, nor a part of one: write x = x + y for a new one; the "
            "numbers of a parameter change by sgd_step, an optimizer or update()");
    }
    [[gnu::noinline]] static void drop(detail::ValueNode<T>* node) {  // the last handle has gone
        if (node->refs > 1 && !node->keeps_values) detail::reset(node->value);
        detail::unref(node);
    }
    [[gnu::always_inline]] void expect_start(const char* what, const T* seed,
                                             std::uint64_t oldest_target) const {
        detail::ValueNode<T>& node = checked(what);
        check_thread(what, node);
        if (node.state == detail::State::consumed && node.id > oldest_target)
            detail::BackwardPass::throw_consumed(&node);
        if (node.state == detail::State::queued)
            throw Error(std::string("[") + what + "] the graph of this '" + node.op() +
                        "' is just being swept");
        if (node.state == detail::State::constant)
            throw Error(std::string("[") + what + "] nothing to differentiate: this value of " +
                        detail::describe(node.value) +
                        " depends on no parameter; was it made inside NoGrad, or detached?");
        if (seed && !detail::has_memory(*seed)) detail::throw_empty("seed");
        if (!seed && !detail::is_scalar(node.value))
            throw Error(std::string("[") + what + "] needs a seed: the result is " +
                        detail::describe(node.value) + ", and only a single element may go without");
        if (seed && !detail::same_shape_and_device(*seed, node.value))
            throw Error(std::string("[") + what + "] the seed is " + detail::describe(*seed) +
                        ", the result " + detail::describe(node.value));
    }
    detail::ValueNode<T>& mutable_leaf(const char* what) const {  // to be changed
        detail::ValueNode<T>& node = checked(what);
        check_thread(what, node);
        detail::require_unlocked(what, node);
        return node;
    }
    detail::ValueNode<T>& leaf(const char* what) const {
        detail::ValueNode<T>& node = checked(what);
        check_thread(what, node);
        if (node.state != detail::State::leaf)
            throw Error(std::string("[") + what + "] only a parameter is updated, not the result of '" +
                        node.op() + "'");
        return node;
    }
    // Of a parameter, in place; afterwards value and gradient must still have one form.
    template <class F> void modify_in_place(const char* what, F f, T detail::ValueNode<T>::*part) const {
        detail::ValueNode<T>& node = *node_;
        f(node.*part);
        if (!detail::has_memory(node.*part)) replace_lost(what, part);
        if (detail::same_shape_and_device(node.value, node.gradient)) return;
        const std::string value = detail::describe(node.value), gradient = detail::describe(node.gradient);
        const bool of_value = part == &detail::ValueNode<T>::value;
        node.clear_gradient();
        node.gradient = detail::like_without_memory(node.value);
        throw Error(std::string("[") + what + "] a parameter of " + (of_value ? gradient : value) +
                    " was given a " + (of_value ? "value of " + value : "gradient of " + gradient));
    }

    // The function moved the memory away, or put an array without memory in its place.
    [[noreturn, gnu::cold]] void replace_lost(const char* what, T detail::ValueNode<T>::*part) const {
        detail::ValueNode<T>& node = *node_;
        const bool of_value = part == &detail::ValueNode<T>::value;
        if (of_value)
            node.value = detail::nans_like(node.gradient);
        else
            free_grad();
        throw Error(std::string("[") + what + "] the function left the parameter of " +
                    detail::describe(node.gradient) + " without " +
                    (of_value ? "a value: it is NaN now; assign() new numbers" : "its gradient") +
                    "; write into the array, or replace it by one with memory");
    }

    detail::ValueNode<T>* node_ = nullptr;
};

// Not in the class, where it would be inline, and each program that calls it would compile it.
template <detail::Value T> void Var<T>::start(const char* what, const T* seed, std::uint64_t oldest_target,
                                              const detail::BackwardPass::Hook* hook) const {
    expect_start(what, seed, oldest_target);
    detail::ValueNode<T>& node = *node_;
    detail::BackwardPass backward_pass(oldest_target, hook);
    if (!backward_pass.enqueue_if_needed(&node)) return;  // nothing that grad() asks for
    accumulate_into(node.into(), seed ? *seed : detail::ones_like(node.value));
    if (node.state == detail::State::leaf) detail::account_as(node.gradient, MemoryClass::gradient);
    backward_pass.run();
}

// ---- leaves and constants ----

// A leaf that wants a gradient; of a variable, such as parameter(randn({3, 2}, {.seed = 1})), it takes the numbers.
template <detail::Value T> Var<T> parameter(T value) {
    detail::make_unique_buffer(value);  // it will be stepped in place
    detail::account_as(value, MemoryClass::parameter);
    return Var<T>(std::move(value), detail::State::leaf);
}

namespace detail {
template <class V>
concept Variable = std::same_as<V, Var<typename V::value_type>>;
}  // namespace detail
template <detail::Variable V> V parameter(const V& numbers) {
    return parameter(typename V::value_type(numbers.value()));
}

// One that wants no gradient.
template <detail::Value T> Var<T> constant(T value) {
    return Var<T>(std::move(value), detail::State::constant);
}
template <detail::Variable V> V constant(const V& numbers) { return constant(numbers.value()); }

// Its value as a constant: nothing goes back through it.
template <detail::Value T> Var<T> detach(const Var<T>& x) {
    return Var<T>(x.value(), detail::State::constant);
}

// ---- gradients without touching any leaf ----

namespace detail {
// Of `y`, weighted by `seed`, with respect to leaves or results on the way to it.
template <Value T> std::vector<T> gradients(const Var<T>& y, const T* seed, const std::vector<Var<T>>& xs) {
    struct
        SavedGradient {  // a leaf's own gradient, set aside while this sweep runs, and put back whatever happens
        void take(ValueNode<T>& n) {
            node = &n;
            gradient = std::exchange(n.gradient, detail::like_without_memory(n.value));
            grad_flags = std::exchange(n.grad_flags, std::uint8_t{0});
            n.is_grad_target = true;
        }
        ~SavedGradient() {
            if (!node) return;
            node->is_grad_target = false;
            node->gradient = std::move(gradient);
            node->grad_flags = grad_flags;
        }
        ValueNode<T>* node = nullptr;
        T gradient{};
        std::uint8_t grad_flags = 0;
    };
    std::vector<SavedGradient> loans(xs.size());
    std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < xs.size(); ++i) {
        ValueNode<T>& node = xs[i].checked("grad");
        Var<T>::check_thread("grad", node);
        if (!xs[i].requires_grad())
            throw Error("[grad] input " + std::to_string(i) + " of " + detail::describe(node.value) +
                        " is a constant: it has no gradient");
        if (node.is_grad_target)
            throw Error("[grad] input " + std::to_string(i) + " of " + detail::describe(node.value) +
                        " is asked for twice");
        loans[i].take(node);
        if (node.id < oldest) oldest = node.id;
    }
    y.start("grad", seed, oldest);
    std::vector<T> found;
    for (std::size_t i = 0; i < xs.size(); ++i) {
        if (!xs[i].has_grad())
            throw Error("[grad] no gradient arrived at input " + std::to_string(i) + " of " +
                        detail::describe(xs[i].value()) + ": the result does not depend on it");
        found.push_back(std::move(xs[i].node()->gradient));
    }
    return found;
}
}  // namespace detail

template <detail::Value T> std::vector<T> grad(const Var<T>& y, const std::vector<Var<T>>& xs) {
    return detail::gradients<T>(y, nullptr, xs);
}

template <detail::Value T>
std::vector<T> grad(const Var<T>& y, const T& seed, const std::vector<Var<T>>& xs) {
    return detail::gradients<T>(y, &seed, xs);
}

}  // namespace tally
