// A Var<T> is a handle to a value in the graph. backward() and grad() compute gradients of this value.
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
// A ValueNode is a Node with a value and a gradient. Leaves and constants are of class ValueNode.
template <class T> class ValueNode : public Node {
public:
    [[gnu::always_inline]] ValueNode(T&& v, detail::State s)
        : Node(s), gradient(detail::like_without_memory(v)), value(std::move(v)) {}

    // Call into() right before each write. The first write sets the gradient, and later writes add to it.
    [[gnu::always_inline]] Into<T> into() {
        if constexpr (!Number<T>)
            if (grad_flags & grad_flag::locked) [[unlikely]]
                detail::prepare_write_to_locked(*this);
        if (grad_ref().is_present()) {
            detail::make_unique_buffer(gradient);  // a buffer that another array shares must not change
            return {gradient, Write::add};
        }
        grad_flags |= grad_flag::present;
        return {gradient, Write::set};
    }

    bool complete_gradient() const { return detail::complete_gradient(grad_ref()); }
    void clear_gradient() { detail::clear_gradient(grad_ref()); }
    [[gnu::always_inline]] GradientRef<T> grad_ref() const { return {&gradient, &value, &grad_flags}; }
    const char* op() const override { return state == detail::State::leaf ? "parameter" : "constant"; }
    void backward(detail::BackwardPass&) override { detail::unref(this); }
    void destroy(Node*&) override {
        this->~ValueNode();
        pool::give(this, sizeof *this);
    }

    mutable T gradient;  // allocated by the first write; an inner node frees it after its backward function
    T value;             // freed with the last handle
};

// Throws if a Window locks this leaf, or if a backward() is running that began after the leaf was made.
template <class T>
[[gnu::always_inline]] inline void require_unlocked(const char* call, const ValueNode<T>& node) {
    if (context.backward_passes && node.id < context.backward_start_id) [[unlikely]]
        throw_during_backward(call);
    if (is_locked(node.grad_flags)) [[unlikely]]
        throw_locked(call, describe(node.value));
}
}  // namespace detail

// GradInputs lets a backward function write the gradients of its operation's inputs.
template <class T> class GradInputs {
public:
    GradInputs(detail::ValueNode<T>* const* inputs, std::size_t count, bool can_reuse_dy)
        : inputs_(inputs), count_(static_cast<std::uint32_t>(count)), can_reuse_dy_(can_reuse_dy) {}
    // Returns whether the backward function may overwrite dy, because nothing else reads dy later.
    bool can_reuse_dy() const { return can_reuse_dy_; }
    bool needs_grad(std::size_t input) const {
        if (input >= count_) [[unlikely]]
            detail::throw_no_such_input(input, count_);
        return inputs_[input] != nullptr;
    }
    // Returns a gradient as a destination, and marks it as written. Call into() just before each write.
    [[gnu::always_inline]] Into<T> into(std::size_t input) const {
        if (!needs_grad(input)) detail::throw_gradient_not_needed(input);
        const Into<T> gradient = inputs_[input]->into();
        if (gradient.how == Write::set) inputs_[input]->grad_flags |= grad_flag::first_write;
        return gradient;
    }
    detail::GradientRef<T> grad_ref(std::size_t input) const { return inputs_[input]->grad_ref(); }
    // Adds a computed gradient. An input without a gradient buffer shares the buffer of `gradient`.
    void add(std::size_t input, const T& gradient) const {
        if (!detail::has_memory(gradient)) detail::fail_without_memory("gradient");
        if (needs_grad(input) && !try_add(input, gradient, false))
            detail::fail_gradient_shape(detail::describe(inputs_[input]->value), detail::describe(gradient));
    }
    // Adds dy if its shape and device are those of the input. Returns whether dy was added. If no other gradient
    // needs dy (`is_last_use`), an input without a gradient buffer can take over the buffer of dy.
    bool try_pass_on(std::size_t input, const T& dy, bool is_last_use) const {
        return try_add(input, dy, is_last_use && can_reuse_dy_);
    }

private:
    bool try_add(std::size_t input, const T& gradient, bool can_reuse) const {
        if (!detail::same_shape_and_device(inputs_[input]->value, gradient)) return false;
        const Into<T> to = into(input);
        if (!can_reuse || !detail::try_take_over(to, gradient)) accumulate_into(to, gradient);
        return true;
    }

    detail::ValueNode<T>* const* inputs_;  // GradInputs has 16 bytes, so that it is passed in registers
    std::uint32_t count_;
    bool can_reuse_dy_;
};

template <detail::Value T> class Var;

namespace detail {
// backward(f) passes a VisitedNode to f before it runs the backward function of that node.
template <class T> struct VisitedNode {
    const Node& node;
    const T& value;  // already freed, unless a handle or KeepValues keeps it
    const T& gradient;
};
}  // namespace detail

template <detail::Value T> class [[nodiscard]] Var {
public:
    using value_type = T;

    Var() = default;
    [[gnu::always_inline]] Var(T value) : Var(std::move(value), detail::State::constant) {}
    [[gnu::always_inline]] Var(T value, detail::State state) {
        if (!detail::has_memory(value)) detail::fail_without_memory("variable");
        node_ = new (pool::take(sizeof(detail::ValueNode<T>))) detail::ValueNode<T>(std::move(value), state);
    }
    explicit Var(detail::ValueNode<T>* node) : node_(node) {}

    Var(const Var& other) : node_(other.node_) {
        if (!node_) return;
        require_own_thread("copy", *node_);  // the count of handles is not atomic
        ++node_->handles;
    }
    Var(Var&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    Var& operator=(Var other) & noexcept {
        std::swap(node_, other.node_);
        return *this;
    }
    template <class Other> void operator=(const Other&) && { not_in_place<Other>(); }  // rejects x[0] = y
    // Rejects `parameter = array`, which would replace the parameter by a constant.
    template <class Plain>
    requires(std::same_as<std::remove_cvref_t<Plain>, T> && !detail::Number<T>) Var& operator=(Plain&&) & {
        static_assert(!sizeof(Plain),
                      "call parameter.assign(numbers) to change a parameter, or write "
                      "variable = constant(numbers) to make the variable a constant");
    }
    [[gnu::always_inline]] ~Var() {
        if (node_ && --node_->handles == 0) drop(node_);
    }
    template <class Other> void operator+=(const Other&) { not_in_place<Other>(); }
    template <class Other> void operator-=(const Other&) { not_in_place<Other>(); }
    template <class Other> void operator*=(const Other&) { not_in_place<Other>(); }
    template <class Other> void operator/=(const Other&) { not_in_place<Other>(); }

    explicit operator bool() const { return node_ != nullptr; }
    const T& value() const& { return node_or_throw("value").value; }
    T value() const&& { return node_or_throw("value").value; }  // a copy, because the variable is a temporary
    auto item() const { return detail::item(value()); }         // of a variable with a single element
    const Shape& shape() const& { return detail::shape_of(value()); }
    Shape shape() const&& { return detail::shape_of(node_or_throw("shape").value); }
    // x[i] is the part at index i of the first axis. x.t() swaps the last two axes. Include shape_ops.hpp.
    Var operator[](std::int64_t i) const requires(!detail::Number<T>) { return at(*this, i); }
    Var t() const requires(!detail::Number<T>) { return transpose(*this); }
    Var detach() const { return Var(value(), detail::State::constant); }  // no gradient flows through it
    bool requires_grad() const { return node_ && node_->state != detail::State::constant; }

    // ---- the gradient, and changes of a leaf in place ----
    bool has_grad() const { return node_ && node_->complete_gradient(); }
    [[nodiscard]] const T& grad() const& {
        const detail::ValueNode<T>& node = node_or_throw("grad");
        if (!node.complete_gradient()) detail::throw_no_gradient(node, detail::describe(node.value));
        detail::mark_escaped(node.grad_flags);
        return node.gradient;
    }
    [[nodiscard]] T grad() const&& { return grad(); }
    // Clears the gradient, but keeps the gradient's buffer for the next backward().
    void zero_grad() const { unlocked_node("zero_grad").clear_gradient(); }
    // Clears the gradient and frees its buffer.
    void free_grad() const {
        detail::ValueNode<T>& node = unlocked_node("free_grad");
        node.clear_gradient();
        detail::reset(node.gradient);
    }
    // If the gradient is present, calls f(value, gradient), which changes the value in place through
    // value.writable(). A later backward() through an operation that saved the old value throws.
    template <class F> void update(F f) const {
        if (leaf("update").complete_gradient())
            modify_value([&](T& value) { f(value, std::as_const(node_->gradient)); }, "update");
    }
    // Replaces the value of a parameter in place, so that all handles see the new value. A later backward()
    // that needs the previous value throws.
    void assign(const T& value) const requires(!detail::Number<T>) {
        detail::ValueNode<T>& node = leaf("assign");
        if (node.value.shape() != value.shape())
            throw Error("assign", "a parameter of ", node.value.shape(), " was given a value of ",
                        value.shape());
        detail::require_unlocked("assign", node);
        detail::require_not_averaged("assign", node.grad_flags);
        if (!detail::has_memory(value)) detail::fail_without_memory("assign");
        detail::before_in_place_update(node.value);
        detail::copy_into(node.value, value);
    }
    // Calls f(value) to change a parameter in place, with or without a gradient.
    template <class F> void modify_value(F f, const char* call = "modify_value") const {
        detail::ValueNode<T>& node = leaf(call);
        detail::require_unlocked(call, node);
        detail::require_not_averaged(call, node.grad_flags);
        detail::before_in_place_update(node.value);
        modify_in_place(call, f, &detail::ValueNode<T>::value);
    }
    // Calls f(gradient) to change an existing gradient in place. Copies of the gradient do not change.
    template <class F> void modify_grad(F f) const {
        detail::ValueNode<T>& node = leaf("modify_grad");
        detail::require_unlocked("modify_grad", node);
        if (!node.complete_gradient()) return;
        detail::account_as(node.gradient, MemoryClass::gradient);
        modify_in_place("modify_grad", f, &detail::ValueNode<T>::gradient);
    }

    // ---- backward ----
    void backward() const { run_backward("backward", nullptr); }
    void backward(const T& seed) const { run_backward("backward", &seed); }
    template <std::invocable<const detail::VisitedNode<T>&> Visit> void backward(const Visit& visit) const {
        const auto call = [](const void* callable, Node& node) {
            const auto& seen = static_cast<const detail::ValueNode<T>&>(node);
            (*static_cast<const Visit*>(callable))(detail::VisitedNode<T>{seen, seen.value, seen.gradient});
        };
        const detail::BackwardPass::Hook hook{call, &visit};
        run_backward("backward", nullptr, 0, &hook);
    }

    // ---- for the engine ----
    detail::ValueNode<T>* node() const { return node_; }
    // Returns whether this variable is the last handle to a result. An operation may overwrite the value of
    // the last handle, unless a backward function has saved the value.
    bool is_last_handle() const {
        return node_ && node_->handles == 1 && node_->state == detail::State::fresh && !node_->keeps_values;
    }
    // Drops this handle. The last handle frees the value. With `keep_ref`, returns the node, and the caller owns
    // one reference: a new one or, from the last handle, the one that all handles shared. Otherwise returns null.
    [[gnu::always_inline]] detail::ValueNode<T>* take_node(bool keep_ref) && {
        detail::ValueNode<T>* node = std::exchange(node_, nullptr);
        if (--node->handles > 0) {
            if (keep_ref) ++node->refs;
            return keep_ref ? node : nullptr;
        }
        if (keep_ref) {
            if (!node->keeps_values) detail::reset(node->value);
            return node;
        }
        detail::unref(node);
        return nullptr;
    }
    detail::ValueNode<T>& node_or_throw(const char* call) const {
        if (!node_) [[unlikely]]
            detail::throw_empty(call);
        return *node_;
    }
    void run_backward(const char* call, const T* seed, std::uint64_t oldest_target_id = 0,
                      const detail::BackwardPass::Hook* hook = nullptr) const;
    static void require_own_thread(const char* call, const Node& node) {
        if (node.thread_id != detail::context.thread_id) [[unlikely]]
            detail::throw_wrong_thread(call, node);
    }

private:
    template <class Other> static constexpr void not_in_place() {
        static_assert(
            !sizeof(Other),
            "a variable is not changed in place: write x = x + y for a new variable, and change a parameter "
            "by sgd_step(), an optimizer or update()");
    }
    [[gnu::noinline]] static void drop(detail::ValueNode<T>* node) {  // called for the last handle
        if (node->refs > 1 && !node->keeps_values) detail::reset(node->value);
        detail::unref(node);
    }
    [[gnu::always_inline]] void require_differentiable(const char* call, const T* seed,
                                                       std::uint64_t oldest_target_id) const {
        detail::ValueNode<T>& node = node_or_throw(call);
        require_own_thread(call, node);
        if (node.state == detail::State::consumed && node.id > oldest_target_id)
            detail::BackwardPass::throw_consumed(call, &node);
        if (node.state == detail::State::queued)
            throw Error(std::string("[") + call + "] a running backward() already uses the graph of this '" +
                        node.op() + "'; call " + call + "() outside that backward()");
        if (node.state == detail::State::constant)
            throw Error(call, "nothing to differentiate: this value of ", detail::describe(node.value),
                        " depends on no parameter; was it made inside NoGrad, or detached?");
        if (seed && !detail::has_memory(*seed)) detail::fail_without_memory("seed");
        if (!seed && !detail::has_one_element(node.value))
            throw Error(call, "needs a seed, because the result has ", detail::describe(node.value),
                        "; only a result with one element needs none");
        if (seed && !detail::same_shape_and_device(*seed, node.value))
            throw Error(call, "the seed has ", detail::describe(*seed), ", the result has ",
                        detail::describe(node.value));
    }
    detail::ValueNode<T>& unlocked_node(const char* call) const {
        detail::ValueNode<T>& node = node_or_throw(call);
        require_own_thread(call, node);
        detail::require_unlocked(call, node);
        return node;
    }
    detail::ValueNode<T>& leaf(const char* call) const {
        detail::ValueNode<T>& node = node_or_throw(call);
        require_own_thread(call, node);
        if (node.state == detail::State::constant)
            throw Error(call, "requires a parameter; this variable is a constant");
        if (node.state != detail::State::leaf)
            throw Error(call, "requires a parameter; this variable is the result of '", node.op(), "'");
        return node;
    }
    // Applies f to the value or the gradient. Throws if value and gradient then differ in shape or device.
    template <class F> void modify_in_place(const char* call, F f, T detail::ValueNode<T>::*part) const {
        detail::ValueNode<T>& node = *node_;
        f(node.*part);
        if (!detail::has_memory(node.*part)) throw_lost_memory(call, part);
        if (detail::same_shape_and_device(node.value, node.gradient)) return;
        const std::string value = detail::describe(node.value), gradient = detail::describe(node.gradient);
        const bool of_value = part == &detail::ValueNode<T>::value;
        node.clear_gradient();
        node.gradient = detail::like_without_memory(node.value);
        throw Error(std::string("[") + call + "] a parameter of " + (of_value ? gradient : value) +
                    " was given a " + (of_value ? "value of " + value : "gradient of " + gradient));
    }

    // Sets a value without memory to NaN, or frees a gradient without memory, and then throws.
    [[noreturn, gnu::cold]] void throw_lost_memory(const char* call, T detail::ValueNode<T>::*part) const {
        detail::ValueNode<T>& node = *node_;
        const bool of_value = part == &detail::ValueNode<T>::value;
        if (of_value)
            node.value = detail::full_like(node.gradient, std::numeric_limits<double>::quiet_NaN());
        else
            free_grad();
        throw Error(call, "the function left the parameter of ", detail::describe(node.gradient),
                    " without a ",
                    of_value ? "value, so the value is now NaN; assign() new numbers. " : "gradient. ",
                    "In the function, write to the array or replace it by an array with memory");
    }

    detail::ValueNode<T>* node_ = nullptr;
};

// run_backward() is not inline, so that programs use the instantiation that core_ops.hpp declares.
template <detail::Value T> void Var<T>::run_backward(const char* call, const T* seed,
                                                     std::uint64_t oldest_target_id,
                                                     const detail::BackwardPass::Hook* hook) const {
    require_differentiable(call, seed, oldest_target_id);
    detail::ValueNode<T>& node = *node_;
    detail::BackwardPass backward_pass(oldest_target_id, hook);
    if (!backward_pass.enqueue_if_needed(&node)) return;  // the result uses no target of grad()
    if (!seed && node.state != detail::State::leaf && !node.is_grad_target) {  // without a temporary
        detail::set_to_one(node.into().dst);
    } else {
        // into() marks the gradient as written, so the allocation comes first.
        const T start = seed ? *seed : detail::full_like(node.value, 1);
        accumulate_into(node.into(), start);
    }
    if (node.state == detail::State::leaf) detail::account_as(node.gradient, MemoryClass::gradient);
    backward_pass.run();
}

// Makes a leaf that receives gradients, from an array or from the value of a variable such as randn({3, 2}).
template <detail::Value T> Var<T> parameter(T value) {
    detail::make_unique_buffer(value);  // optimizers change it in place
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

// Makes a variable that receives no gradient.
template <detail::Value T> Var<T> constant(T value) {
    return Var<T>(std::move(value), detail::State::constant);
}
template <detail::Variable V> V constant(const V& numbers) { return constant(numbers.value()); }

namespace detail {
// Returns the gradients of `y`, weighted by `seed`, with respect to leaves or intermediate results.
template <Value T> std::vector<T> gradients(const Var<T>& y, const T* seed, const std::vector<Var<T>>& xs) {
    // Stores the existing gradient of a target during the backward pass, and restores it even after an error.
    struct SavedGradient {
        void save(ValueNode<T>& n) {
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
    std::vector<SavedGradient> saved(xs.size());
    std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < xs.size(); ++i) {
        ValueNode<T>& node = xs[i].node_or_throw("grad");
        Var<T>::require_own_thread("grad", node);
        if (!xs[i].requires_grad())
            throw Error("grad", "input ", i, " of ", describe(node.value),
                        " is a constant: it has no gradient");
        if (node.is_grad_target)
            throw Error("grad", "input ", i, " of ", describe(node.value), " is asked for twice");
        saved[i].save(node);
        if (node.id < oldest) oldest = node.id;
    }
    y.run_backward("grad", seed, oldest);
    std::vector<T> found;
    for (std::size_t i = 0; i < xs.size(); ++i) {
        if (!xs[i].has_grad())
            throw Error("grad", "no gradient arrived at input ", i, " of ", describe(xs[i].value()),
                        ": the result does not depend on it");
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
