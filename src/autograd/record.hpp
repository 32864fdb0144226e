// record(): by which every operation joins the graph.
#pragma once

#include <array>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/autograd/observer.hpp"
#include "tally/autograd/operation.hpp"
#include "tally/autograd/recording_hook.hpp"

namespace tally {

namespace detail {
// The nodes of inputs: in an array where their number is known, so that nothing is allocated.
template <class T, class... Inputs>
[[gnu::always_inline]] inline std::array<ValueNode<T>*, sizeof...(Inputs)> nodes_of(
    const std::tuple<Inputs...>& inputs) {
    return std::apply(
        [&](const auto&... input) { return std::array<ValueNode<T>*, sizeof...(Inputs)>{input.node()...}; },
        inputs);
}
template <class T> std::vector<ValueNode<T>*> nodes_of(const std::vector<Var<T>>& inputs) {
    std::vector<ValueNode<T>*> nodes;
    nodes.reserve(inputs.size());
    for (const Var<T>& input : inputs) nodes.push_back(input.node());
    return nodes;
}

// A result that nobody can want a gradient of.
template <class T> [[gnu::noinline]] Var<T> make_constant_result(const char* op, T&& value) {
    if (watching::detail::observer) notify_constant(op, observed(value));
    return Var<T>(std::move(value), State::constant);
}

// With a temporary goes its value, unless a rule keeps it.
template <class T, class Inputs> [[gnu::always_inline]] inline void release_inputs(Inputs& inputs) {
    for_each_input(inputs, [](Var<T>& input) { void(Var<T>(std::move(input))); });
}

// What a recorder makes of a computed value, if it is not to become a node as usual.
template <class T, class Name, class... Saves, class Rule, class Inputs>
[[gnu::always_inline]] inline Var<T> try_intercept(const Name& name, T& value,
                                                   const std::tuple<Saves...>& saves, const Rule& rule,
                                                   Inputs& inputs) {
    T computed = std::move(value);  // elsewhere nobody asks where it lies: it may stay in a register
    const auto operands = nodes_of<T>(inputs);
    const auto read = saved_inputs(saves, &value, &computed);
    Var<T> y = intercept<T>(name.text(), computed, operands, read,
                            std::is_same_v<Name, Label> ? std::nullopt : constants_of(rule));
    if (y)
        release_inputs<T>(inputs);
    else
        value = std::move(computed);
    return y;
}

// Joins a computed value to the graph. Inputs (a tuple of references, or a vector) are let go of here.
template <class T, class Name, class... Saves, class Rule, class Inputs>
[[gnu::always_inline]] inline Var<T> make_node(Name&& name, T&& value, const std::tuple<Saves...>& saves,
                                               Rule&& rule, Inputs& inputs) {
    for_each_input(
        inputs, [&](const Var<T>& input) { Var<T>::check_thread(name.text(), input.checked(name.text())); });
    if (context.recorder) [[unlikely]]
        if (Var<T> y = try_intercept<T>(name, value, saves, rule, inputs)) return y;

    bool wanted = false;
    if (context.recording)
        for_each_input(
            inputs, [&](const Var<T>& input) { wanted = wanted || input.node()->state != State::constant; });
    if (!wanted) {
        Var<T> y = make_constant_result(name.text(), T(std::move(value)));
        release_inputs<T>(inputs);
        return y;
    }
    auto nodes = nodes_of<T>(inputs);
    using Op = Operation<T, Name, decltype(nodes), std::decay_t<Rule>, Saves...>;
    Op* node = new (pool::take(sizeof(Op))) Op(std::move(name), std::move(value), saves, std::move(rule));
    if (watching::detail::observer) [[unlikely]]
        notify_recorded(*node);
    auto* read = nodes.data();
    for_each_input(
        inputs, [&](Var<T> & input) __attribute__((always_inline)) {
            *read = std::move(input).into_node((*read)->state != State::constant || context.keep_values);
            ++read;
        });
    node->set_inputs(std::move(nodes));
    return Var<T>(node);
}

// record() by a name that only the program knows.
template <class T, class... Saves, class Rule, class... Inputs>
Var<T> record_as(Label name, T&& value, const std::tuple<Saves...>& saves, Rule&& rule, Inputs&&... inputs) {
    auto all = std::tie(inputs...);
    return make_node<T>(std::move(name), std::move(value), saves, std::move(rule), all);
}
}  // namespace detail

// Inputs by reference, because the arguments before them still read what is moved.
template <detail::FixedName Name, class T, class... Saves, class Rule, class... Inputs>
[[gnu::always_inline]] inline Var<T> record(T&& value, const std::tuple<Saves...>& saves, Rule&& rule,
                                            Inputs&&... inputs) {
    auto all = std::tie(inputs...);
    return detail::make_node<T>(detail::FixedLabel<Name>(), std::move(value), saves, std::move(rule), all);
}

namespace detail {
// record() for any number of inputs.
template <detail::FixedName Name, class T, class... Saves, class Rule>
Var<T> record_many(T&& value, const std::tuple<Saves...>& saves, Rule&& rule, std::vector<Var<T>> inputs) {
    return detail::make_node<T>(detail::FixedLabel<Name>(), std::move(value), saves, std::move(rule), inputs);
}
}  // namespace detail

}  // namespace tally
