// The node that an operation becomes: its inputs, what its rule reads, and the rule.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/autograd/keep.hpp"
#include "tally/autograd/var.hpp"
#include "tally/autograd/watched.hpp"
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
    void become(Nodes nodes) { nodes_ = std::move(nodes); }
    Pull<T> pull(bool spare) const { return Pull<T>(nodes_.data(), nodes_.size(), spare); }
    std::vector<Node*> nodes() const { return {nodes_.begin(), nodes_.end()}; }

    // Says whether a gradient is wanted; those that the sweep does not reach are let go.
    [[gnu::always_inline]] bool reached_by(Sweep& sweep) {
        bool wanted = false;
        for_each_input(
            nodes_, [&](ValueNode<T> * &input) __attribute__((always_inline)) {
                if (!input) return;
                if (sweep.reaches(input))
                    wanted = true;
                else
                    let_go_of(std::exchange(input, nullptr));
            });
        return wanted;
    }
    [[gnu::always_inline]] void settle_gradients() const {  // of leaves, for the ledger
        for_each_input(
            nodes_, [](ValueNode<T> * input) __attribute__((always_inline)) {
                if (input && input->state == State::leaf && input->view().has_arrived())
                    settle(input->gradient, MemoryClass::gradient);
            });
    }
    void take_back() const {  // what a rule has asked for, and thrown
        for_each_input(nodes_, [](ValueNode<T>* input) {
            if (input && input->state == State::leaf && input->touched & touch::asked) input->untouch();
        });
    }
    std::vector<ValueNode<T>*> all() const {
        std::vector<ValueNode<T>*> inputs;
        for_each_input(nodes_, [&](ValueNode<T>* input) { inputs.push_back(input); });
        return inputs;
    }
    void forget() {
        for_each_input(nodes_, [](ValueNode<T>*& input) {
            if (input) let_go_of(std::exchange(input, nullptr));
        });
    }
    [[gnu::always_inline]] void let_go() const {  // for the last time
        for_each_input(nodes_, [](ValueNode<T>* input) {
            if (input) let_go_of(input);
        });
    }
    [[gnu::always_inline]] void let_go(Node*& doomed) const {
        for_each_input(nodes_, [&](ValueNode<T>* input) {
            if (input) let_go_of(input, doomed);
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

// A recorded operation: its inputs, the values its rule needs, and the rule. Rule: (Pull<T>, const T& dy,
// const T& kept...).
template <class T, class Name, class Nodes, class Rule, class... Saves> class Operation final
    : public ValueNode<T> {
public:
    // Flat, as free(): otherwise each of the many kinds of node calls what is shorter than a call.
    [[gnu::flatten]] Operation(Name name, T&& v, const std::tuple<Saves...>& saves, Rule&& rule)
        : ValueNode<T>(std::move(v), State::fresh),
          kept_(granted(saves, &v)),
          rule_(std::move(rule)),
          name_(std::move(name)) {}
    void read_from(Nodes inputs) { inputs_.become(std::move(inputs)); }

    void pull(Sweep& sweep) override {
        if (watching::checks) [[unlikely]]
            return pull_on_trial(*this, sweep);
        if constexpr (custom) return pull_with(sweep, [this] { call_custom_rule(); });
        pull_with(sweep, [this] { call_rule(!this->target); });
    }
    template <class Call> [[gnu::always_inline]] void pull_with(Sweep& sweep, Call call) {
        if (inputs_.reached_by(sweep) && this->touched) {
            context.pulled = this;
            call();
            inputs_.settle_gradients();
        }
        if (this->refs > 1) {
            forget();
            return let_go_of(this);
        }
        inputs_.let_go();
        free();
    }
    [[gnu::always_inline]] void call_rule(bool spare) {
        std::apply(
            [&](const auto&... kept) {
                rule_(inputs_.pull(spare), std::as_const(this->gradient), kept.get(op())...);
            },
            kept_);
    }

    // The backward function of a custom operation may set its inputs' gradients or add to them, but must not forget one.
    // With `only_look` it is called for that alone, and no input gets anything.
    [[gnu::noinline]] void call_custom_rule(bool only_look = false) {
        std::vector<ValueNode<T>*> places = inputs_.all();  // each input gets a node of its own
        std::vector<std::optional<ValueNode<T>>> own(places.size());
        for (std::size_t i = 0; i < places.size(); ++i)
            if (places[i]) places[i] = &own[i].emplace(T(places[i]->value), State::constant);
        const bool spare = !only_look && !this->target;
        const Meanwhile<bool> zeroed(detail::destinations_are_zeroed, true);
        std::apply(
            [&](const auto&... kept) {
                rule_(Pull<T>(places.data(), places.size(), spare), std::as_const(this->gradient),
                      kept.get(op())...);
            },
            kept_);
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (!places[i]) continue;
            if (!places[i]->has_gradient()) refuse_forgotten(op(), i, form(places[i]->value));
            if (only_look) continue;
            const T found = std::move(places[i]->gradient);  // alone, so that it may be adopted
            inputs_.pull(false).give(i, found);
        }
    }

    const char* op() const override { return name_.text(); }
    std::vector<Node*> inputs() const override { return inputs_.nodes(); }
    void take_back() override { inputs_.take_back(); }
    void forget() override {
        inputs_.forget();
        std::apply([](auto&... kept) { (kept.drop(), ...); }, kept_);
        if (this->target) return;  // its gradient is what grad() was asked for
        let_go(this->gradient);
        this->touched = false;
    }
    void dismantle(Node*& doomed) override {
        inputs_.let_go(doomed);
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
    Values granted(const std::tuple<Saves...>& saves, const T* computed) const {
        return std::apply(
            [&](const auto&... each) { return Values(each.resolve(computed, &this->value)...); }, saves);
    }

    detail::Inputs<T, Nodes> inputs_;
    Values kept_;
    [[no_unique_address]] Rule rule_;
    [[no_unique_address]] Name name_;
};

}  // namespace tally::detail
