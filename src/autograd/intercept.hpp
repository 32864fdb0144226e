// Passes an operation to this thread's Interceptor, which may replace the operation's node by a proxy node.
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

#include "tally/autograd/interceptor.hpp"
#include "tally/autograd/observer.hpp"
#include "tally/autograd/save_for_backward.hpp"
#include "tally/autograd/var.hpp"
#include "tally/base/checksum.hpp"

namespace tally::detail {

// OpInfoOf implements OpInfo for values of type T.
template <class T> class OpInfoOf final : public OpInfo {
public:
    OpInfoOf(const char* name, bool result_needs_grad, T& computed, std::span<ValueNode<T>* const> inputs,
             std::span<const SavedRef> refs, std::optional<std::uint64_t> checksum)
        : OpInfo(name, result_needs_grad, &computed, inputs.size(), refs, checksum),
          value(computed),
          inputs_(inputs) {}
    OpInput input(std::size_t which) const override { return {inputs_[which], &inputs_[which]->value}; }
    InputIdentity identity(std::size_t which) const override {
        const T& input = inputs_[which]->value;
        if constexpr (requires { input.storage(); })
            return {version_of(input), reinterpret_cast<std::uintptr_t>(input.data())};
        else
            return {0, checksum(input)};
    }
    memory::detail::Storage* buffer(std::size_t which) const override {
        if constexpr (requires { value.storage(); }) return inputs_[which]->value.storage();
        return nullptr;
    }
    std::uint64_t input_checksum(std::size_t which) const override { return checksum(inputs_[which]->value); }
    std::uint64_t result_checksum(std::optional<unsigned> sample) const override {
        return checksum(value, sample);
    }
    std::string describe_result() const override { return describe(value); }
    ValueInfo result_info() const override { return value_info(value); }
    void drop_result() override { reset(value); }

    T& value;

private:
    std::span<ValueNode<T>* const> inputs_;
};

// A proxy replaces a node inside a checkpointed function. The graph is not kept, so backward() throws.
template <class T> class CheckpointProxyNode final : public ValueNode<T> {
public:
    static Var<T> of(T&& v) {
        return Var<T>(new (pool::take(sizeof(CheckpointProxyNode))) CheckpointProxyNode(std::move(v)));
    }
    const char* op() const override { return "checkpointed operation"; }
    void backward(BackwardPass&) override { throw_inside_checkpoint(); }
    void destroy(Node*&) override {
        this->~CheckpointProxyNode();
        pool::give(this, sizeof *this);
    }

private:
    explicit CheckpointProxyNode(T&& v) : ValueNode<T>(std::move(v), State::fresh) {}
};

// Passes an operation to the interceptor. Returns a proxy node, or an empty Var if no proxy is needed.
template <class T> [[gnu::noinline]] Var<T> intercept(const char* op, T& value,
                                                      std::span<ValueNode<T>* const> inputs,
                                                      std::span<const SavedRef> saved,
                                                      std::optional<std::uint64_t> captures_checksum) {
    bool needs_grad = false;
    for (const ValueNode<T>* input : inputs) needs_grad = needs_grad || input->state != State::constant;
    OpInfoOf<T> operation(op, context.recording && needs_grad, value, inputs, saved, captures_checksum);
    return context.interceptor->on_operation(operation) ? Var<T>()
                                                        : CheckpointProxyNode<T>::of(std::move(value));
}

// Lists the values that the backward function will read. The operation's result now has address `after_move`.
template <class T, class... Saves>
std::array<SavedRef, sizeof...(Saves)> saved_refs(const std::tuple<Saves...>& saves, const T* before_move,
                                                  const T* after_move) {
    const auto entry = [&](const auto& each) -> SavedRef {
        const void* const address = each.address();
        if constexpr (requires { each.value->storage(); })
            if constexpr (!std::is_same_v<decltype(each.value), const T*>)
                return {address, [](const void* value) {
                            return checksum(*static_cast<decltype(each.value)>(value));
                        }};
        return {address == before_move ? after_move : address, nullptr};
    };
    return std::apply(
        [&](const auto&... each) { return std::array<SavedRef, sizeof...(Saves)>{entry(each)...}; }, saves);
}

// Returns a checksum of the numbers that a backward function captured, unless they cannot be compared.
template <class Backward> std::optional<std::uint64_t> captures_checksum_of(const Backward& backward) {
    if constexpr (std::has_unique_object_representations_v<Backward>)
        return checksum_of(&backward, sizeof backward);
    if (sizeof backward == 1) return 0;  // no captured numbers
    return std::nullopt;
}

}  // namespace tally::detail
