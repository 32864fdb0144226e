// The node that an operation becomes: its inputs, what its rule reads, and the rule.
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

// The name of an operation: known to the compiler (and then free of cost), or to the program.
template <FixedName Name> struct FixedLabel {
    constexpr const char* text() const { return Name; }
};
struct Label {
    const char* text() const { return name.c_str(); }
    std::string name;
};

// One after the other, without a loop where their number is known: operations on numbers are that short.
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

// The nodes that an operation reads from, in an array or a vector; null where no gradient is wanted.
template <class T, class Nodes> class Inputs {
public:
    void assign(Nodes nodes) { nodes_ = std::move(nodes); }
    GradInputs<T> grad_inputs(bool can_reuse_dy) const {
        return GradInputs<T>(nodes_.data(), nodes_.size(), can_reuse_dy);
    }
    std::vector<Node*> nodes() const { return {nodes_.begin(), nodes_.end()}; }

    // Says whether a gradient is wanted; those that the sweep does not reach are let go.
    [[gnu::always_inline]] bool enqueue_inputs(BackwardPass& backward_pass) {
        bool wanted = false;
        for_each_input(
            nodes_, [&](ValueNode<T> * &input) __attribute__((always_inline)) {
                if (!input) return;
                if (backward_pass.enqueue_if_needed(input))
                    wanted = true;
                else
                    unref(std::exchange(input, nullptr));
            });
        return wanted;
    }
    [[gnu::always_inline]] void account_gradients() const {  // of leaves, for the ledger
        for_each_input(
            nodes_, [](ValueNode<T> * input) __attribute__((always_inline)) {
                if (input && input->state == State::leaf && input->view().is_present())
                    account_as(input->gradient, MemoryClass::gradient);
            });
    }
    void rollback_gradients() const {  // what a rule has asked for, and thrown
        for_each_input(nodes_, [](ValueNode<T>* input) {
            if (input && input->state == State::leaf && input->grad_flags & grad_flag::first_write)
                input->clear_gradient();
        });
    }
    std::vector<ValueNode<T>*> all() const {
        std::vector<ValueNode<T>*> inputs;
        for_each_input(nodes_, [&](ValueNode<T>* input) { inputs.push_back(input); });
        return inputs;
    }
    void clear() {
        for_each_input(nodes_, [](ValueNode<T>*& input) {
            if (input) unref(std::exchange(input, nullptr));
        });
    }
    [[gnu::always_inline]] void unref_all() const {  // for the last time
        for_each_input(nodes_, [](ValueNode<T>* input) {
            if (input) unref(input);
        });
    }
    [[gnu::always_inline]] void unref_all(Node*& pending) const {
        for_each_input(nodes_, [&](ValueNode<T>* input) {
            if (input) unref(input, pending);
        });
    }
    std::vector<GradientView<T>> gradients() const {
        std::vector<GradientView<T>> all;
        for_each_input(nodes_, [&](ValueNode<T>* input) {
            if (input) input->has_gradient();  // adds the rows that wait
            all.push_back(input ? input->view() : GradientView<T>());
        });
        return all;
    }

private:
    Nodes nodes_{};
};

// A recorded operation: its inputs, the values its rule needs, and the rule. Rule: (GradInputs<T>, const T&
// dy, const T& kept...).
template <class T, class Name, class Nodes, class Rule, class... Saves> class Operation final
    : public ValueNode<T> {
public:
    // Flat, as free(): otherwise each of the many kinds of node calls what is shorter than a call.
    [[gnu::flatten]] Operation(Name name, T&& v, const std::tuple<Saves...>& saves, Rule&& rule)
        : ValueNode<T>(std::move(v), State::fresh),
          kept_(saved_values(saves, &v)),
          rule_(std::move(rule)),
          name_(std::move(name)) {}
    void set_inputs(Nodes inputs) { inputs_.assign(std::move(inputs)); }

    void backward(BackwardPass& backward_pass) override {
        if (watching::checks) [[unlikely]]
            return run_checked_backward(*this, backward_pass);
        if constexpr (custom) return run_backward(backward_pass, [this] { call_custom_backward(); });
        run_backward(backward_pass, [this] { call_backward(!this->is_grad_target); });
    }
    template <class Call> [[gnu::always_inline]] void run_backward(BackwardPass& backward_pass, Call call) {
        if (inputs_.enqueue_inputs(backward_pass) && this->grad_flags) {
            context.current_node = this;
            call();
            inputs_.account_gradients();
        }
        if (this->refs > 1) {
            clear();
            return unref(this);
        }
        inputs_.unref_all();
        free();
    }
    [[gnu::always_inline]] void call_backward(bool can_reuse_dy) {
        std::apply(
            [&](const auto&... kept) {
                rule_(inputs_.grad_inputs(can_reuse_dy), std::as_const(this->gradient), kept.get(op())...);
            },
            kept_);
    }

    // The backward function of a custom operation may set its inputs' gradients or add to them, but must not
    // forget one. With `only_look` it is called for that alone, and no input gets anything.
    [[gnu::noinline]] void call_custom_backward(bool only_look = false) {
        std::vector<ValueNode<T>*> places = inputs_.all();  // each input gets a node of its own
        std::vector<std::optional<ValueNode<T>>> own(places.size());
        for (std::size_t i = 0; i < places.size(); ++i)
            if (places[i]) places[i] = &own[i].emplace(T(places[i]->value), State::constant);
        const bool can_reuse_dy = !only_look && !this->is_grad_target;
        const ScopedValue<bool> zeroed(detail::zero_output_buffers, true);
        std::apply(
            [&](const auto&... kept) {
                rule_(GradInputs<T>(places.data(), places.size(), can_reuse_dy),
                      std::as_const(this->gradient), kept.get(op())...);
            },
            kept_);
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (!places[i]) continue;
            if (!places[i]->has_gradient()) throw_no_gradient_written(op(), i, describe(places[i]->value));
            if (only_look) continue;
            const T found = std::move(places[i]->gradient);  // alone, so that it may be adopted
            inputs_.grad_inputs(false).add(i, found);
        }
    }

    const char* op() const override { return name_.text(); }
    std::vector<Node*> inputs() const override { return inputs_.nodes(); }
    void rollback_gradients() override { inputs_.rollback_gradients(); }
    void clear() override {
        inputs_.clear();
        std::apply([](auto&... kept) { (kept.drop(), ...); }, kept_);
        if (this->is_grad_target) return;  // its gradient is what grad() was asked for
        reset(this->gradient);
        this->grad_flags = false;
    }
    void destroy(Node*& pending) override {
        inputs_.unref_all(pending);
        free();
    }

    // ---- for who looks on (watched.hpp) ----
    static constexpr bool custom = std::is_same_v<Name, Label>;
    std::vector<GradientView<T>> gradients() const { return inputs_.gradients(); }
    template <class F> decltype(auto) with_kept(F f) const {
        return std::apply([&](const auto&... kept) { return f(kept.get(op())...); }, kept_);
    }

private:
    [[gnu::flatten]] void free() {
        this->~Operation();
        pool::give(this, sizeof *this);
    }

    using Values = std::tuple<typename Saves::saved...>;
    // Reads the values while the inputs still have them; the output has just moved in here.
    Values saved_values(const std::tuple<Saves...>& saves, const T* before_move) const {
        return std::apply(
            [&](const auto&... each) { return Values(each.pick(before_move, &this->value)...); }, saves);
    }

    detail::Inputs<T, Nodes> inputs_;
    Values kept_;
    [[no_unique_address]] Rule rule_;
    [[no_unique_address]] Name name_;
};

}  // namespace tally::detail
