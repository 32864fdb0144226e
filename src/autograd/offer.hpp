// Offers an operation to this thread's Recorder, which may want another node in its place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tally/autograd/keep.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/autograd/recorder.hpp"
#include "tally/autograd/var.hpp"
#include "tally/base/checksum.hpp"

namespace tally::detail {

// An operation whose values are of type T.
template <class T> class NewOperationOf final : public NewOperation {
public:
    NewOperationOf(const char* name, bool becomes_node, T& computed, std::span<ValueNode<T>* const> inputs,
                   std::span<const ReadValue> read, std::optional<std::uint64_t> held)
        : NewOperation(name, becomes_node, &computed, inputs.size(), read, held),
          value(computed),
          inputs_(inputs) {}
    Operand operand(std::size_t which) const override { return {inputs_[which], &inputs_[which]->value}; }
    Contents contents(std::size_t which) const override {
        const T& read = inputs_[which]->value;
        if constexpr (requires { read.storage(); })
            return {version_of(read), reinterpret_cast<std::uintptr_t>(read.data())};
        else
            return {0, checksum(read)};
    }
    memory::detail::Storage* buffer(std::size_t which) const override {
        if constexpr (requires { value.storage(); }) return inputs_[which]->value.storage();
        return nullptr;
    }
    std::uint64_t result_checksum() const override { return checksum(value); }
    std::string result_form() const override { return form(value); }
    ObservedValue observed_result() const override { return observed(value); }
    void let_result_go() override { let_go(value); }

    T& value;

private:
    std::span<ValueNode<T>* const> inputs_;
};

// A value that a recorder made a node of, instead of its operation: there is no way back from it.
template <class T> class Placeholder final : public ValueNode<T> {
public:
    static Var<T> of(T&& v) {
        return Var<T>(new (pool::take(sizeof(Placeholder))) Placeholder(std::move(v)));
    }
    const char* op() const override { return "inside of checkpoint"; }
    void pull(Sweep&) override { refuse_placeholder(); }
    void dismantle(Node*&) override {
        this->~Placeholder();
        pool::give(this, sizeof *this);
    }

private:
    explicit Placeholder(T&& v) : ValueNode<T>(std::move(v), State::fresh) {}
};

// Shows an operation to the recorder: gives the placeholder that is to be made instead, or nothing.
template <class T>
[[gnu::noinline]] Var<T> offer(const char* op, T& value, std::span<ValueNode<T>* const> inputs,
                               std::span<const ReadValue> reads, std::optional<std::uint64_t> constants) {
    bool wanted = false;
    for (const ValueNode<T>* input : inputs) wanted = wanted || input->state != State::constant;
    NewOperationOf<T> operation(op, context.recording && wanted, value, inputs, reads, constants);
    return context.recorder->admit(operation) ? Var<T>() : Placeholder<T>::of(std::move(value));
}

// What a rule will read; where that is the result, which has moved from `computed`, its new place.
template <class T, class... Saves>
std::array<ReadValue, sizeof...(Saves)> shown(const std::tuple<Saves...>& saves, const T* computed,
                                              const T* moved) {
    const auto show = [&](const auto& each) -> ReadValue {
        const void* const address = each.address();
        if constexpr (requires { each.value->storage(); })
            if constexpr (!std::is_same_v<decltype(each.value), const T*>)
                return {address, [](const void* value) {
                            return checksum(*static_cast<decltype(each.value)>(value));
                        }};
        return {address == computed ? moved : address, nullptr};
    };
    return std::apply(
        [&](const auto&... each) { return std::array<ReadValue, sizeof...(Saves)>{show(each)...}; }, saves);
}

// What a rule holds beside what it reads.
template <class Rule> std::optional<std::uint64_t> constants_of(const Rule& rule) {
    if constexpr (std::has_unique_object_representations_v<Rule>) return checksum_of(&rule, sizeof rule);
    if (sizeof rule == 1) return 0;  // a formula without numbers
    return std::nullopt;
}

}  // namespace tally::detail
