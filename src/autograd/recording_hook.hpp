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

#include "tally/autograd/observer.hpp"
#include "tally/autograd/recorder.hpp"
#include "tally/autograd/save_for_backward.hpp"
#include "tally/autograd/var.hpp"
#include "tally/base/checksum.hpp"

namespace tally::detail {

// An operation whose values are of type T.
template <class T> class OpInfoOf final : public OpInfo {
public:
    OpInfoOf(const char* name, bool becomes_node, T& computed, std::span<ValueNode<T>* const> inputs,
             std::span<const SavedInput> read, std::optional<std::uint64_t> held)
        : OpInfo(name, becomes_node, &computed, inputs.size(), read, held),
          value(computed),
          inputs_(inputs) {}
    OpInput operand(std::size_t which) const override { return {inputs_[which], &inputs_[which]->value}; }
    InputIdentity contents(std::size_t which) const override {
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
    std::string describe_result() const override { return describe(value); }
    ValueInfo observed_result() const override { return observed(value); }
    void drop_result() override { reset(value); }

    T& value;

private:
    std::span<ValueNode<T>* const> inputs_;
};

// A value that a recorder made a node of, instead of its operation: there is no way back from it.
template <class T> class CheckpointProxyNode final : public ValueNode<T> {
public:
    static Var<T> of(T&& v) {
        return Var<T>(new (pool::take(sizeof(CheckpointProxyNode))) CheckpointProxyNode(std::move(v)));
    }
    const char* op() const override { return "inside of checkpoint"; }
    void backward(BackwardPass&) override { throw_inside_checkpoint(); }
    void destroy(Node*&) override {
        this->~CheckpointProxyNode();
        pool::give(this, sizeof *this);
    }

private:
    explicit CheckpointProxyNode(T&& v) : ValueNode<T>(std::move(v), State::fresh) {}
};

// Shows an operation to the recorder: gives the placeholder that is to be made instead, or nothing.
template <class T> [[gnu::noinline]] Var<T> intercept(const char* op, T& value,
                                                      std::span<ValueNode<T>* const> inputs,
                                                      std::span<const SavedInput> reads,
                                                      std::optional<std::uint64_t> constants) {
    bool wanted = false;
    for (const ValueNode<T>* input : inputs) wanted = wanted || input->state != State::constant;
    OpInfoOf<T> operation(op, context.recording && wanted, value, inputs, reads, constants);
    return context.recorder->on_operation(operation) ? Var<T>()
                                                     : CheckpointProxyNode<T>::of(std::move(value));
}

// What a rule will read; where that is the result, which has moved from `computed`, its new place.
template <class T, class... Saves>
std::array<SavedInput, sizeof...(Saves)> saved_inputs(const std::tuple<Saves...>& saves, const T* computed,
                                                      const T* moved) {
    const auto show = [&](const auto& each) -> SavedInput {
        const void* const address = each.address();
        if constexpr (requires { each.value->storage(); })
            if constexpr (!std::is_same_v<decltype(each.value), const T*>)
                return {address, [](const void* value) {
                            return checksum(*static_cast<decltype(each.value)>(value));
                        }};
        return {address == computed ? moved : address, nullptr};
    };
    return std::apply(
        [&](const auto&... each) { return std::array<SavedInput, sizeof...(Saves)>{show(each)...}; }, saves);
}

// What a rule holds beside what it reads.
template <class Rule> std::optional<std::uint64_t> constants_of(const Rule& rule) {
    if constexpr (std::has_unique_object_representations_v<Rule>) return checksum_of(&rule, sizeof rule);
    if (sizeof rule == 1) return 0;  // a formula without numbers
    return std::nullopt;
}

}  // namespace tally::detail
