// record() adds an operation to the graph as a node.
#pragma once

#include <array>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/autograd/intercept.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/autograd/operation.hpp"

namespace tally {

namespace detail {
// Returns the nodes of the inputs in an array, because an array, unlike a vector, needs no allocation.
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

template <class T> [[gnu::noinline]] Var<T> make_constant_result(const char* op, T&& value) {
    if (instrumentation::detail::observer) notify_without_node(op, value_info(value));
    return Var<T>(std::move(value), State::constant);
}

// Drops the inputs. The value of a dropped temporary is freed, unless a backward function has saved it.
template <class T, class Inputs> [[gnu::always_inline]] inline void release_inputs(Inputs& inputs) {
    for_each_input(inputs, [](Var<T>& input) { void(Var<T>(std::move(input))); });
}

// Returns the proxy of an intercepted value, or an empty variable if the value must be recorded as usual.
template <class T, class Name, class... Saves, class Backward, class Inputs>
[[gnu::always_inline]] inline Var<T> try_intercept(const Name& name, T& value,
                                                   const std::tuple<Saves...>& saves,
                                                   const Backward& backward, Inputs& inputs) {
    // `value` can stay in registers, because intercept() receives the address of `computed` instead.
    T computed = std::move(value);
    const auto nodes = nodes_of<T>(inputs);
    const auto saved = saved_refs(saves, &value, &computed);
    Var<T> y =
        intercept<T>(name.text(), computed, nodes, saved,
                     std::is_same_v<Name, RuntimeName> ? std::nullopt : captures_checksum_of(backward));
    if (y)
        release_inputs<T>(inputs);
    else
        value = std::move(computed);
    return y;
}

// Creates a node for a value, and releases the inputs. `inputs` is a tuple of references or a vector.
template <class T, class Name, class... Saves, class Backward, class Inputs>
[[gnu::always_inline]] inline Var<T> make_node(Name&& name, T&& value, const std::tuple<Saves...>& saves,
                                               Backward&& backward, Inputs& inputs) {
    for_each_input(inputs, [&](const Var<T>& input) {
        Var<T>::require_own_thread(name.text(), input.node_or_throw(name.text()));
    });
    if (context.interceptor) [[unlikely]]
        if (Var<T> y = try_intercept<T>(name, value, saves, backward, inputs)) return y;

    bool needs_grad = false;
    if (context.recording)
        for_each_input(inputs, [&](const Var<T>& input) {
            needs_grad = needs_grad || input.node()->state != State::constant;
        });
    if (!needs_grad) {
        Var<T> y = make_constant_result(name.text(), T(std::move(value)));
        release_inputs<T>(inputs);
        return y;
    }
    auto nodes = nodes_of<T>(inputs);
    using Op = Operation<T, Name, decltype(nodes), std::decay_t<Backward>, Saves...>;
    Op* node = new (pool::take(sizeof(Op))) Op(std::move(name), std::move(value), saves, std::move(backward));
    if (instrumentation::detail::observer) [[unlikely]]
        notify_recorded(*node);
    auto* slot = nodes.data();
    for_each_input(
        inputs, [&](Var<T> & input) __attribute__((always_inline)) {
            *slot = std::move(input).take_node((*slot)->state != State::constant || context.keeps_values);
            ++slot;
        });
    node->set_inputs(std::move(nodes));
    return Var<T>(node);
}

// Works like record(), for a name that is known only at run time.
template <class T, class... Saves, class Backward, class... Inputs>
Var<T> record_as(RuntimeName name, T&& value, const std::tuple<Saves...>& saves, Backward&& f,
                 Inputs&&... inputs) {
    auto all = std::tie(inputs...);
    return make_node<T>(std::move(name), std::move(value), saves, std::move(f), all);
}
}  // namespace detail

// Creates the node of a computed value. Saved values are copied before the inputs are moved.
template <detail::FixedName Name, class T, class... Saves, class Backward, class... Inputs>
[[gnu::always_inline]] inline Var<T> record(T&& value, const std::tuple<Saves...>& saves, Backward&& backward,
                                            Inputs&&... inputs) {
    auto all = std::tie(inputs...);
    return detail::make_node<T>(detail::StaticName<Name>(), std::move(value), saves, std::move(backward),
                                all);
}

namespace detail {
// Works like record(), for a number of inputs that is known only at run time.
template <detail::FixedName Name, class T, class... Saves, class Backward>
Var<T> record_many(T&& value, const std::tuple<Saves...>& saves, Backward&& f, std::vector<Var<T>> inputs) {
    return detail::make_node<T>(detail::StaticName<Name>(), std::move(value), saves, std::move(f), inputs);
}
}  // namespace detail

}  // namespace tally
