// record(): by which every operation joins the graph, or a checkpointed block, and onlookers are told of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "autograd/block.hpp"
#include "autograd/checksum.hpp"
#include "autograd/onlooker.hpp"
#include "autograd/var.hpp"

namespace tally {

// A result while a checkpointed function runs for the first time: there is no way back from it.
template <class T>
class Draft final : public ValueNode<T> {
public:
    explicit Draft(T&& v) : ValueNode<T>(std::move(v), State::fresh) {}
    const char* op() const override { return "inside of checkpoint"; }
    void pull(Sweep&) override { refuse_draft(); }
    void dismantle(Node*&) override {
        this->~Draft();
        pool::give(this, sizeof *this);
    }
};

// Tells a checkpointed function that is running what its next operation reads: of an array its version and
// its place, a number as it is.
template <class T>
[[gnu::noinline]] void tell_block(std::span<ValueNode<T>* const> inputs) {
    for (const ValueNode<T>* input : inputs) {
        const T& value = input->value;
        if constexpr (requires { value.storage(); }) {
            const auto place = reinterpret_cast<std::uintptr_t>(value.data());
            if (context.block->reads_outside(*input, version_of(value), place))
                context.block->hold(*input, std::make_shared<const Saved<T>>(&value));
        } else {
            context.block->reads_outside(*input, 0, checksum(value));
        }
    }
}

// What a rule holds beside what it reads, as one number to compare.
struct Held {
    std::uint64_t sum = 0;
    bool known = true;  // or nobody can tell: then the operation is computed again, and its value compared
};
// In a checkpointed function: what the rule holds, and where the operands come from.
template <class T>
Held with_origins(Held held, std::span<ValueNode<T>* const> inputs) {
    for (const ValueNode<T>* input : inputs)
        held.sum = (held.sum ^ context.block->origin(*input)) * 0x9E3779B97F4A7C15u;
    return held;
}
template <class T, class Rule, class... Wishes>
Held held_by(const Rule& rule, const std::tuple<Wishes...>& wishes) {
    Held held{0, sizeof rule == 1};  // a formula without numbers
    if constexpr (std::has_unique_object_representations_v<Rule>) held = {checksum_of(&rule, sizeof rule)};
    const auto take_in = [&](const auto& wish) {  // labels, indices, conditions
        if constexpr (requires { wish.value->storage(); })
            if constexpr (!std::is_same_v<decltype(wish.value), const T*>)
                if (wish.value && context.block->verified())
                    held.sum = (held.sum ^ checksum(*wish.value)) * 0x9E3779B97F4A7C15u;
    };
    std::apply([&](const auto&... wish) { (take_in(wish), ...); }, wishes);
    return held;
}

// The first time that a checkpointed function runs: of an operation its result remains, and what is noted of
// it (block.hpp).
template <class T>
Var<T> draft(const char* op, T&& value, std::span<const void* const> wishes,
             std::span<ValueNode<T>* const> inputs, const Held& held) {
    BlockRun& run = *context.block;
    const auto note = [&](const void* wished) {
        if (!wished) return;
        if (wished == &value) return run.reads_result();
        for (const ValueNode<T>* input : inputs)
            if (wished == &input->value) return run.reads(*input);
        run.reads_inside();
    };
    for (const void* wished : wishes) note(wished);
    if (!held.known) run.reads_inside();
    if (context.onlooker) tell_unrecorded(op, seen(value));
    const std::uint64_t sum = run.verified() ? checksum(value) : 0;
    const Var<T> result(new (pool::take(sizeof(Draft<T>))) Draft<T>(std::move(value)));
    tell_block(inputs);
    run.note({op, sum, with_origins(held, inputs).sum}, *result.node());
    return result;
}

// What a rule wishes to keep; where that is the result, which has moved from `computed`, its new place.
template <class T, class... Wishes>
std::array<const void*, sizeof...(Wishes)> addresses(const std::tuple<Wishes...>& wishes, const T* computed,
                                                     const T* result) {
    const auto place = [&](const void* wished) { return wished == computed ? result : wished; };
    return std::apply(
        [&](const auto&... wish) {
            return std::array<const void*, sizeof...(Wishes)>{place(wish.address())...};
        },
        wishes);
}

// When it runs again: the value was computed and must be the same, or was kept, or is not needed.
template <class T>
void meet_again(const char* op, T& value, std::span<ValueNode<T>* const> inputs, const Held& held) {
    BlockRun& run = *context.block;
    tell_block(inputs);
    if (run.meet(op, with_origins(held, inputs).sum)) {
        if (run.verified()) run.compare(checksum(value), form(value));
    } else if (const void* const kept = run.kept(run.place(), typeid(T))) {
        value = *static_cast<const T*>(kept);
    } else {
        let_go(value);
    }
    run.step();
}

// A variable if this is the first run; otherwise empty, and the value is what is recorded.
template <class T>
[[gnu::noinline]] Var<T> in_block(const char* op, T& value, std::span<const void* const> wishes,
                                  std::span<ValueNode<T>* const> inputs, const Held& held) {
    if (context.block->first()) return draft<T>(op, std::move(value), wishes, inputs, held);
    meet_again<T>(op, value, inputs, held);
    return {};
}

// A result that nobody can want a gradient of. Nothing is noted of it in a checkpointed function, so it must
// be there when that runs again.
template <class T>
[[gnu::noinline]] Var<T> unrecorded(const char* op, T&& value) {
    if (context.block && context.block->first()) context.block->reads_inside();
    if (context.onlooker) tell_unrecorded(op, seen(value));
    return Var<T>(std::move(value), State::constant);
}

// Joins a computed value to the graph. Inputs are moved in: a temporary's value is let go here unless a rule
// keeps it. (By reference, because the arguments before them still read what is moved.)
template <class Name, class T, class... Wishes, class Rule, class... Inputs>
inline Var<T> record_as(Name name, T&& value, const std::tuple<Wishes...>& wishes, Rule&& rule,
                        Inputs&&... inputs) {
    (Var<T>::check_thread(name.text(), inputs.checked(name.text())), ...);
    if (!context.recording || !((inputs.node()->state != State::constant) || ...)) {
        if (context.block) [[unlikely]]
            tell_block<T>(std::array<ValueNode<T>*, sizeof...(Inputs)>{inputs.node()...});
        Var<T> y = unrecorded(name.text(), T(std::move(value)));
        (void(Inputs(std::move(inputs))), ...);
        return y;
    }
    if (context.block) [[unlikely]] {
        const std::array<ValueNode<T>*, sizeof...(Inputs)> nodes{inputs.node()...};
        const Held held = std::is_same_v<Name, Label> ? Held{0, false} : held_by<T>(rule, wishes);
        T computed = std::move(value);  // elsewhere nobody asks where it lies: it may stay in a register
        const auto kept = addresses(wishes, &value, &computed);
        if (Var<T> y = in_block<T>(name.text(), computed, kept, nodes, held)) {
            (void(Inputs(std::move(inputs))), ...);
            return y;
        }
        value = std::move(computed);
    }
    using Nodes = std::array<ValueNode<T>*, sizeof...(Inputs)>;
    using Op = Operation<T, Name, Nodes, std::decay_t<Rule>, Wishes...>;
    Op* node = new (pool::take(sizeof(Op))) Op(std::move(name), std::move(value), wishes, std::move(rule));
    if (context.onlooker) [[unlikely]]
        node->tell();
    node->read_from(
        {std::move(inputs).release(inputs.node()->state != State::constant || context.watching)...});
    return Var<T>(node);
}

template <FixedName Name, class T, class... Wishes, class Rule, class... Inputs>
inline Var<T> record(T&& value, const std::tuple<Wishes...>& wishes, Rule&& rule, Inputs&&... inputs) {
    return record_as(FixedLabel<Name>(), std::move(value), wishes, std::move(rule), std::move(inputs)...);
}

// The same for any number of inputs.
template <FixedName Name, class T, class... Wishes, class Rule>
Var<T> record_many(T&& value, const std::tuple<Wishes...>& wishes, Rule&& rule, std::vector<Var<T>> inputs) {
    bool wanted = false;
    for (const Var<T>& input : inputs) {
        Var<T>::check_thread(Name, input.checked(Name));
        wanted = wanted || input.wants_grad();
    }
    using Nodes = std::vector<ValueNode<T>*>;
    if (!context.recording || !wanted) {
        if (context.block) [[unlikely]] {
            Nodes read;
            for (const Var<T>& input : inputs) read.push_back(input.node());
            tell_block<T>(read);
        }
        return unrecorded(Name, std::move(value));
    }
    using Op = Operation<T, FixedLabel<Name>, Nodes, std::decay_t<Rule>, Wishes...>;
    Nodes nodes;
    nodes.reserve(inputs.size());
    if (context.block) [[unlikely]] {
        for (const Var<T>& input : inputs) nodes.push_back(input.node());
        const Held held = held_by<T>(rule, wishes);
        const auto kept = addresses(wishes, &value, &value);
        if (Var<T> y = in_block<T>(Name, value, kept, nodes, held)) return y;
        nodes.clear();
    }
    Op* node = new (pool::take(sizeof(Op))) Op({}, std::move(value), wishes, std::move(rule));
    if (context.onlooker) [[unlikely]]
        node->tell();
    for (Var<T>& input : inputs)
        nodes.push_back(std::move(input).release(input.wants_grad() || context.watching));
    node->read_from(std::move(nodes));
    return Var<T>(node);
}

}  // namespace tally
