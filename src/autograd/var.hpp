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

#include "tally/array/pending_rows.hpp"
#include "tally/array/shape.hpp"
#include "tally/array/value.hpp"
#include "tally/autograd/sweep.hpp"
#include "tally/base/error.hpp"
#include "tally/memory/pool.hpp"

namespace tally {

namespace detail {

// A node with its value and its gradient; by itself a leaf or a constant.
template <class T> class ValueNode : public Node {
public:
    [[gnu::always_inline]] ValueNode(T&& v, detail::State s)
        : Node(s), gradient(detail::unwritten_like(v)), value(std::move(v)) {}

    // Asked for immediately before the kernel that writes: the first contribution sets, each later one adds.
    [[gnu::always_inline]] Into<T> into() {
        if constexpr (!Number<T>)
            if (touched & touch::held) [[unlikely]]
                detail::reach_held(*this);
        if (view().has_arrived()) {
            detail::own(gradient);  // a buffer shared with somebody else is not written to
            return {gradient, Write::add};
        }
        touched |= touch::arrived;
        return {gradient, Write::set};
    }

    bool has_gradient() const { return detail::has_all(view()); }
    void untouch() { detail::untouch(view()); }
    [[gnu::always_inline]] detail::GradientView<T> view() const { return {&gradient, &value, &touched}; }
    const char* op() const override { return state == detail::State::leaf ? "parameter" : "constant"; }
    void pull(detail::Sweep&) override { detail::let_go_of(this); }
    void dismantle(Node*&) override {
        this->~ValueNode();
        pool::give(this, sizeof *this);
    }

    mutable T gradient;  // its memory comes with the first write; of an inner node only during the sweep
    T value;             // let go when nobody holds a handle
};

// Asked before a leaf's value or gradient is changed by anything but a sweep.
template <class T> [[gnu::always_inline]] inline void expect_free(const char* what, const ValueNode<T>& of) {
    if (context.sweeps && of.id < context.swept_from) [[unlikely]]
        refuse_in_sweep(what);
    if (is_held(of.touched)) [[unlikely]]
        refuse_held(what, form(of.value));
}

}  // namespace detail

// What a rule writes to: the gradients of its operation's inputs.
template <class T> class Pull {
public:
    Pull(detail::ValueNode<T>* const* inputs, std::size_t count, bool spare)
        : inputs_(inputs), count_(static_cast<std::uint32_t>(count)), spare_(spare) {}
    // Nobody but the rule will read dy: what is written last may be written over it.
    bool spare() const { return spare_; }
    bool wants(std::size_t input) const {
        if (input >= count_) [[unlikely]]
            detail::refuse_number(input, count_);
        return inputs_[input] != nullptr;
    }
    [[gnu::always_inline]] Into<T> into(std::size_t input) const {
        if (!wants(input)) detail::refuse_unwanted(input);
        const Into<T> place = inputs_[input]->into();
        if (place.how == Write::set) inputs_[input]->touched |= touch::asked;
        return place;
    }
    detail::GradientView<T> view(std::size_t input) const { return inputs_[input]->view(); }
    // Hands over a gradient that is already there; what is the first of an inner node is not copied.
    void give(std::size_t input, const T& gradient) const {
        if (!detail::ready(gradient)) detail::refuse_empty("gradient");
        if (wants(input) && !pass_on(input, gradient))
            detail::fail_gradient_form(detail::form(inputs_[input]->value), detail::form(gradient));
    }
    // The same for a gradient that may have another form; says whether it was handed over.
    bool pass_on(std::size_t input, const T& gradient) const {
        if (!detail::same_form(inputs_[input]->value, gradient)) return false;
        take(into(input), gradient);
        return true;
    }

private:
    detail::ValueNode<T>* const* inputs_;  // two words in all, which travel in registers
    std::uint32_t count_;
    bool spare_;
};

template <detail::Value T> class Var;

namespace detail {
template <class T> struct Visit {  // what an observer of the sweep sees: a node about to be pulled
    const Node& node;
    const T& value;  // let go already, unless a handle or a Watch keeps it
    const T& gradient;
};
}  // namespace detail

template <detail::Value T> class [[nodiscard]] Var {
public:
    using value_type = T;

    Var() = default;
    [[gnu::always_inline]] Var(T value) : Var(std::move(value), detail::State::constant) {}
    [[gnu::always_inline]] Var(T value, detail::State state) {
        if (!detail::ready(value)) detail::refuse_empty("variable");
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
    bool wants_grad() const { return node_ && node_->state != detail::State::constant; }

    // ---- the gradient of a leaf ----
    bool has_grad() const { return node_ && node_->has_gradient(); }
    [[nodiscard]] const T& grad() const& {
        const detail::ValueNode<T>& node = checked("grad");
        if (!node.has_gradient()) detail::refuse_untouched(node, detail::form(node.value));
        detail::show(node.touched);
        return node.gradient;
    }
    [[nodiscard]] T grad() const&& { return grad(); }
    void zero_grad() const { free("zero_grad").untouch(); }  // its buffer stays for the next window
    void free_grad() const {
        detail::ValueNode<T>& node = free("free_grad");
        node.untouch();
        detail::let_go(node.gradient);
    }
    // In place, for optimizers: f(value, gradient) writes through value.writable(). Whoever saved the value
    // for a backward pass will notice.
    template <class F> void update(F f) const {
        if (leaf("update").has_gradient())
            change_value([&](T& value) { f(value, std::as_const(node_->gradient)); }, "update");
    }
    // The same of any parameter, whether a gradient has reached it or not: f(value).
    template <class F> void change_value(F f, const char* what = "change_value") const {
        detail::ValueNode<T>& node = leaf(what);
        detail::expect_free(what, node);
        detail::expect_own_value(what, node.touched);
        detail::changing(node.value);
        change(what, f, &detail::ValueNode<T>::value);
    }
    // f(gradient) in place, where one has arrived; whoever holds a copy of it keeps what it had.
    template <class F> void change_grad(F f) const {
        detail::ValueNode<T>& node = leaf("change_grad");
        detail::expect_free("change_grad", node);
        if (!node.has_gradient()) return;
        detail::settle(node.gradient, MemoryClass::gradient);
        change("change_grad", f, &detail::ValueNode<T>::gradient);
    }

    // ---- backward ----
    void backward() const { start("backward", nullptr); }
    void backward(const T& seed) const { start("backward", &seed); }
    template <std::invocable<const detail::Visit<T>&> Observer>
    void backward(const Observer& observer) const {
        const auto visit = [](const void* who, Node& node) {
            const auto& seen = static_cast<const detail::ValueNode<T>&>(node);
            (*static_cast<const Observer*>(who))(detail::Visit<T>{seen, seen.value, seen.gradient});
        };
        const detail::Sweep::Visitor visitor{visit, &observer};
        start("backward", nullptr, 0, &visitor);
    }

    detail::ValueNode<T>* node() const { return node_; }
    // Nobody will read this result's value once its last handle, which this is, has gone; a rule may
    // keep it, though.
    bool last() const {
        return node_ && node_->handles == 1 && node_->state == detail::State::fresh && !node_->watched;
    }
    // Turns a handle into a newer node's reference; the value goes with the last handle.
    [[gnu::always_inline]] detail::ValueNode<T>* release(bool held) && {
        detail::ValueNode<T>* node = std::exchange(node_, nullptr);
        if (--node->handles > 0) {
            if (held) ++node->refs;
            return held ? node : nullptr;
        }
        if (held) {
            if (!node->watched) detail::let_go(node->value);
            return node;
        }
        detail::let_go_of(node);
        return nullptr;
    }
    detail::ValueNode<T>& checked(const char* what) const {
        if (!node_) [[unlikely]]
            detail::refuse_empty(what);
        return *node_;
    }
    void start(const char* what, const T* seed, std::uint64_t oldest_target = 0,
               const detail::Sweep::Visitor* visitor = nullptr) const;
    static void check_thread(const char* what, const Node& node) {
        if (node.thread != detail::context.thread) [[unlikely]]
            detail::refuse_thread(what, node);
    }

private:
    template <class Other> static constexpr void not_in_place() {
        static_assert(
            !sizeof(Other),
            "a variable is not changed in place, nor a part of one: write x = x + y for a new one; the "
            "numbers of a parameter change by sgd_step, an optimizer or update()");
    }
    [[gnu::noinline]] static void drop(detail::ValueNode<T>* node) {  // the last handle has gone
        if (node->refs > 1 && !node->watched) detail::let_go(node->value);
        detail::let_go_of(node);
    }
    [[gnu::always_inline]] void expect_start(const char* what, const T* seed,
                                             std::uint64_t oldest_target) const {
        detail::ValueNode<T>& node = checked(what);
        check_thread(what, node);
        if (node.state == detail::State::spent && node.id > oldest_target) detail::Sweep::refuse(&node);
        if (node.state == detail::State::queued)
            throw Error(std::string("[") + what + "] the graph of this '" + node.op() +
                        "' is just being swept");
        if (node.state == detail::State::constant)
            throw Error(std::string("[") + what + "] nothing to differentiate: this value of " +
                        detail::form(node.value) +
                        " depends on no parameter; was it made inside NoGrad, or detached?");
        if (seed && !detail::ready(*seed)) detail::refuse_empty("seed");
        if (!seed && !detail::single(node.value))
            throw Error(std::string("[") + what + "] needs a seed: the result is " +
                        detail::form(node.value) + ", and only a single element may go without");
        if (seed && !detail::same_form(*seed, node.value))
            throw Error(std::string("[") + what + "] the seed is " + detail::form(*seed) + ", the result " +
                        detail::form(node.value));
    }
    detail::ValueNode<T>& free(const char* what) const {  // to be changed
        detail::ValueNode<T>& node = checked(what);
        check_thread(what, node);
        detail::expect_free(what, node);
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
    template <class F> void change(const char* what, F f, T detail::ValueNode<T>::*part) const {
        detail::ValueNode<T>& node = *node_;
        f(node.*part);
        if (!detail::ready(node.*part)) replace_lost(what, part);
        if (detail::same_form(node.value, node.gradient)) return;
        const std::string value = detail::form(node.value), gradient = detail::form(node.gradient);
        const bool of_value = part == &detail::ValueNode<T>::value;
        node.untouch();
        node.gradient = detail::unwritten_like(node.value);
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
                    detail::form(node.gradient) + " without " +
                    (of_value ? "a value: it is NaN now; assign() new numbers" : "its gradient") +
                    "; write into the array, or replace it by one with memory");
    }

    detail::ValueNode<T>* node_ = nullptr;
};

// Not in the class, where it would be inline, and each program that calls it would compile it.
template <detail::Value T> void Var<T>::start(const char* what, const T* seed, std::uint64_t oldest_target,
                                              const detail::Sweep::Visitor* visitor) const {
    expect_start(what, seed, oldest_target);
    detail::ValueNode<T>& node = *node_;
    detail::Sweep sweep(oldest_target, visitor);
    if (!sweep.reaches(&node)) return;  // nothing that grad() asks for
    take(node.into(), seed ? *seed : detail::ones_like(node.value));
    if (node.state == detail::State::leaf) detail::settle(node.gradient, MemoryClass::gradient);
    sweep.run();
}

// ---- leaves and constants ----

// A leaf that wants a gradient; of a variable, such as parameter(randn({3, 2}, {.seed = 1})), it takes the numbers.
template <detail::Value T> Var<T> parameter(T value) {
    detail::own(value);  // it will be stepped in place
    detail::settle(value, MemoryClass::parameter);
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
    struct Loan {  // a leaf's own gradient, set aside while this sweep runs, and put back whatever happens
        void take(ValueNode<T>& n) {
            node = &n;
            gradient = std::exchange(n.gradient, detail::unwritten_like(n.value));
            touched = std::exchange(n.touched, std::uint8_t{0});
            n.target = true;
        }
        ~Loan() {
            if (!node) return;
            node->target = false;
            node->gradient = std::move(gradient);
            node->touched = touched;
        }
        ValueNode<T>* node = nullptr;
        T gradient{};
        std::uint8_t touched = 0;
    };
    std::vector<Loan> loans(xs.size());
    std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < xs.size(); ++i) {
        ValueNode<T>& node = xs[i].checked("grad");
        Var<T>::check_thread("grad", node);
        if (!xs[i].wants_grad())
            throw Error("[grad] input " + std::to_string(i) + " of " + detail::form(node.value) +
                        " is a constant: it has no gradient");
        if (node.target)
            throw Error("[grad] input " + std::to_string(i) + " of " + detail::form(node.value) +
                        " is asked for twice");
        loans[i].take(node);
        if (node.id < oldest) oldest = node.id;
    }
    y.start("grad", seed, oldest);
    std::vector<T> found;
    for (std::size_t i = 0; i < xs.size(); ++i) {
        if (!xs[i].has_grad())
            throw Error("[grad] no gradient arrived at input " + std::to_string(i) + " of " +
                        detail::form(xs[i].value()) + ": the result does not depend on it");
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
