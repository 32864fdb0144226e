// An Operation is the node of a recorded operation, with its inputs, saved values and backward function.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/autograd/operation_debug.hpp"
#include "tally/autograd/save_for_backward.hpp"
#include "tally/autograd/var.hpp"
#include "tally/base/fixed_name.hpp"
#include "tally/memory/pool.hpp"

namespace tally::detail {

// A StaticName is the name of an operation. The name is known at compile time and takes no memory.
template <FixedName Name> struct StaticName {
    constexpr const char* text() const { return Name; }
};
struct RuntimeName {  // only custom() uses names that are known at run time
    const char* text() const { return name.c_str(); }
    std::string name;
};

// Calls f for each input. Tuples and arrays are unrolled, which makes graphs of single numbers faster.
template <class Inputs, class F> [[gnu::always_inline]] inline void for_each_input(Inputs& inputs, F f) {
    if constexpr (requires { std::tuple_size<Inputs>::value; }) {
        const auto visit = [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
            (f(std::get<i>(inputs)), ...);
        };
        visit(std::make_index_sequence<std::tuple_size_v<Inputs>>());
    } else {
        for (auto& input : inputs) f(input);
    }
}

// Stores the inputs of an operation. An input that needs no gradient is null, except inside KeepValues.
template <class T, class Nodes> class InputNodes {
public:
    void assign(Nodes nodes) { nodes_ = std::move(nodes); }
    GradInputs<T> grad_inputs(bool can_reuse_dy) const {
        return GradInputs<T>(nodes_.data(), nodes_.size(), can_reuse_dy);
    }
    std::vector<Node*> nodes() const { return {nodes_.begin(), nodes_.end()}; }

    // Queues inputs that need a gradient, and drops other inputs. Returns whether any input needs a gradient.
    [[gnu::always_inline]] bool enqueue_inputs(BackwardPass& backward_pass) {
        bool any_needed = false;
        for_each_input(
            nodes_, [&](ValueNode<T> * &input) __attribute__((always_inline)) {
                if (!input) return;
                if (backward_pass.enqueue_if_needed(input))
                    any_needed = true;
                else
                    unref(std::exchange(input, nullptr));
            });
        return any_needed;
    }
    // Counts the buffers of leaf gradients as MemoryClass::gradient.
    [[gnu::always_inline]] void account_gradients() const {
        for_each_input(
            nodes_, [](ValueNode<T> * input) __attribute__((always_inline)) {
                if (input && input->state == State::leaf && input->grad_ref().is_present())
                    account_as(input->gradient, MemoryClass::gradient);
            });
    }
    void clear_first_writes() const {
        for_each_input(nodes_, [](ValueNode<T>* input) {
            if (input && input->state == State::leaf && input->grad_flags & grad_flag::first_write)
                input->clear_gradient();
        });
    }
    std::vector<ValueNode<T>*> value_nodes() const { return {nodes_.begin(), nodes_.end()}; }
    void clear() {
        for_each_input(nodes_, [](ValueNode<T>*& input) {
            if (input) unref(std::exchange(input, nullptr));
        });
    }
    [[gnu::always_inline]] void unref_all() const {  // call this only before the destructor
        for_each_input(nodes_, [](ValueNode<T>* input) {
            if (input) unref(input);
        });
    }
    [[gnu::always_inline]] void unref_all(Node*& pending) const {
        for_each_input(nodes_, [&](ValueNode<T>* input) {
            if (input) unref(input, pending);
        });
    }
    std::vector<GradientRef<T>> gradients() const {
        std::vector<GradientRef<T>> all;
        for_each_input(nodes_, [&](ValueNode<T>* input) {
            if (input) input->complete_gradient();  // adds deferred products
            all.push_back(input ? input->grad_ref() : GradientRef<T>());
        });
        return all;
    }

private:
    Nodes nodes_{};
};

// The arguments of the backward function are GradInputs<T>, dy and the saved values in the order of save().
template <class T, class Name, class Nodes, class Backward, class... Saves> class Operation final
    : public ValueNode<T> {
public:
    // The attribute flatten inlines all calls into this constructor and into free(), which makes them faster.
    [[gnu::flatten]] Operation(Name name, T&& v, const std::tuple<Saves...>& saves, Backward&& function)
        : ValueNode<T>(std::move(v), State::fresh),
          saved_(saved_values(saves, &v)),
          backward_(std::move(function)),
          name_(std::move(name)) {}
    void set_inputs(Nodes inputs) { inputs_.assign(std::move(inputs)); }

    void backward(BackwardPass& backward_pass) override {
        if (instrumentation::checks) [[unlikely]]
            return run_checked_backward(*this, backward_pass);
        if constexpr (custom) return run_backward(backward_pass, [this] { call_custom_backward(); });
        run_backward(backward_pass, [this] { call_backward(!this->is_grad_target); });
    }
    template <class Call> [[gnu::always_inline]] void run_backward(BackwardPass& backward_pass, Call call) {
        if (inputs_.enqueue_inputs(backward_pass) && this->received_gradient()) {
            context.current_node = this;
            call();
            inputs_.account_gradients();
        }
        if (this->refs > 1) {
            release();
            return unref(this);
        }
        inputs_.unref_all();
        free();
    }
    [[gnu::always_inline]] void call_backward(bool can_reuse_dy) {
        std::apply(
            [&](const auto&... saved) {
                backward_(inputs_.grad_inputs(can_reuse_dy), std::as_const(this->gradient),
                          saved.get(op())...);
            },
            saved_);
    }

    // Throws if a custom backward function does not write the gradient of an input. Gradients are first
    // written to temporary nodes, and are added to the inputs unless `check_only` is true.
    [[gnu::noinline]] void call_custom_backward(bool check_only = false) {
        std::vector<ValueNode<T>*> nodes = inputs_.value_nodes();
        std::vector<std::optional<ValueNode<T>>> temporaries(nodes.size());
        for (std::size_t i = 0; i < nodes.size(); ++i)
            if (nodes[i]) nodes[i] = &temporaries[i].emplace(T(nodes[i]->value), State::constant);
        const bool can_reuse_dy = !check_only && !this->is_grad_target;
        const ScopedValue<bool> zeroed(detail::zero_grad_buffers, true);
        std::apply(
            [&](const auto&... saved) {
                backward_(GradInputs<T>(nodes.data(), nodes.size(), can_reuse_dy),
                          std::as_const(this->gradient), saved.get(op())...);
            },
            saved_);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (!nodes[i]) continue;
            if (!nodes[i]->complete_gradient()) throw_no_gradient_written(op(), i, describe(nodes[i]->value));
            if (check_only) continue;
            const T moved = std::move(nodes[i]->gradient);  // moved, so that the input can own the buffer
            inputs_.grad_inputs(false).add(i, moved);
        }
    }

    const char* op() const override { return name_.text(); }
    std::vector<Node*> inputs() const override { return inputs_.nodes(); }
    void clear_first_writes() override { inputs_.clear_first_writes(); }
    void release() override {
        inputs_.clear();
        std::apply([](auto&... saved) { (saved.drop(), ...); }, saved_);
        if (this->is_grad_target) return;  // grad() returns the gradient
        reset(this->gradient);
        this->grad_flags = 0;
    }
    void destroy(Node*& pending) override {
        inputs_.unref_all(pending);
        free();
    }

    // ---- for operation_debug.hpp ----
    static constexpr bool custom = std::is_same_v<Name, RuntimeName>;
    std::vector<GradientRef<T>> gradients() const { return inputs_.gradients(); }
    template <class F> decltype(auto) with_saved(F f) const {
        return std::apply([&](const auto&... saved) { return f(saved.get(op())...); }, saved_);
    }

private:
    [[gnu::flatten]] void free() {
        this->~Operation();
        pool::give(this, sizeof *this);
    }

    using Values = std::tuple<typename Saves::saved...>;
    // Call this while the inputs still have values. The output has moved from `before_move` to this node.
    Values saved_values(const std::tuple<Saves...>& saves, const T* before_move) const {
        return std::apply(
            [&](const auto&... each) { return Values(each.resolve(before_move, &this->value)...); }, saves);
    }

    detail::InputNodes<T, Nodes> inputs_;
    Values saved_;
    [[no_unique_address]] Backward backward_;
    [[no_unique_address]] Name name_;
};

}  // namespace tally::detail
