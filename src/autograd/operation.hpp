// The node that an operation becomes: its inputs, what its rule reads, and the rule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

namespace tally {

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
    if constexpr (requires { std::tuple_size<Inputs>::value; })
        std::apply([&](auto&... input) { (f(input), ...); }, inputs);
    else
        for (auto& input : inputs) f(input);
}

// A recorded operation: its inputs, the values its rule needs, and the rule. Rule: (Pull<T>, const T& dy,
// const T& kept...).
template <class T, class Name, class Inputs, class Rule, class... Wishes> class Operation final
    : public ValueNode<T> {
public:
    static constexpr bool custom = std::is_same_v<Name, Label>;

    // Flat, as free(): otherwise each of the many kinds of node calls what is shorter than a call.
    [[gnu::flatten]] Operation(Name name, T&& v, const std::tuple<Wishes...>& wishes, Rule&& rule)
        : ValueNode<T>(std::move(v), State::fresh),
          kept_(granted(wishes, &v)),
          rule_(std::move(rule)),
          name_(std::move(name)) {}

    void read_from(Inputs inputs) { inputs_ = std::move(inputs); }
    const char* op() const override { return name_.text(); }
    std::vector<Node*> inputs() const override { return {inputs_.begin(), inputs_.end()}; }

    void pull(Sweep& sweep) override {
        if (watching::checks != Checks::none) [[unlikely]]
            return pull_on_trial(*this, sweep);
        pull_with(sweep, [this] { call_rule(!this->target); });
    }

    template <class Call> [[gnu::always_inline]] void pull_with(Sweep& sweep, Call call) {
        bool wanted = false;
        for_each_read([&](ValueNode<T>*& input) {
            if (!input) return;
            if (sweep.reaches(input))
                wanted = true;
            else
                let_go_of(std::exchange(input, nullptr));
        });
        if (wanted && this->touched) {
            context.pulled = this;
            call();
            for_each_read([](ValueNode<T>* input) {
                if (input && input->state == State::leaf && input->has_gradient())
                    settle(input->gradient, MemoryClass::gradient);
            });
        }
        if (this->refs > 1) {
            forget();
            return let_go_of(this);
        }
        for_each_read([](ValueNode<T>* input) {
            if (input) let_go_of(input);
        });
        free();
    }

    [[gnu::always_inline]] void call_rule(bool spare) {
        with_kept([&](const auto&... kept) __attribute__((always_inline)) {
            rule_(Pull<T>(inputs_.data(), inputs_.size(), spare), std::as_const(this->gradient), kept...);
        });
    }

    // f(what the rule reads...); an Error where that was changed in place.
    template <class F> [[gnu::always_inline]] decltype(auto) with_kept(F f) const {
        return std::apply([&](const auto&... kept) { return f(kept.get(op())...); }, kept_);
    }
    template <class F> [[gnu::always_inline]] void for_each_read(F f) { for_each_input(inputs_, f); }

    void take_back() override {
        for_each_read([](ValueNode<T>* input) {
            if (input && input->state == State::leaf && input->touched & touch::asked) input->untouch();
        });
    }

    void forget() override {
        for_each_read([](ValueNode<T>*& input) {
            if (input) let_go_of(std::exchange(input, nullptr));
        });
        std::apply([](auto&... kept) { (kept.drop(), ...); }, kept_);
        if (this->target) return;  // its gradient is what grad() was asked for
        let_go(this->gradient);
        this->touched = false;
    }

    void dismantle(Node*& doomed) override {
        for_each_read([&](ValueNode<T>* input) {
            if (input) let_go_of(input, doomed);
        });
        free();
    }

private:
    [[gnu::flatten]] void free() {
        this->~Operation();
        pool::give(this, sizeof *this);
    }

    using Kept = std::tuple<typename Wishes::saved...>;
    // Reads the values while the inputs still have them; the output has just moved in here.
    Kept granted(const std::tuple<Wishes...>& wishes, const T* computed) const {
        return std::apply([&](const auto&... wish) { return Kept(wish.resolve(computed, &this->value)...); },
                          wishes);
    }

    Inputs inputs_{};  // an array, or a vector, of nodes; null where no gradient is wanted
    Kept kept_;
    [[no_unique_address]] Rule rule_;
    [[no_unique_address]] Name name_;
};

}  // namespace tally
