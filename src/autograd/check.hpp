// CheckRules: does a rule leave alone what it was given, and write its gradients as it was told?
//
//     const CheckRules check;   // on this thread, while it lives
//     loss.backward();          // an Error names the operation, and what its rule did
//
// gradcheck makes one, and a library built for debugging (without NDEBUG) checks in every thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/error.hpp"
#include "autograd/memory.hpp"
#include "autograd/node.hpp"
#include "autograd/pool.hpp"
#include "autograd/scalar.hpp"

namespace tally {

// What is saved for the way back while one lives is compared, too. Fresh memory is filled with NaN meanwhile.
class CheckRules {
public:
    CheckRules() : before_((this_thread(), std::exchange(context.checks, Checks::all))) {}
    ~CheckRules() {
        context.checks = before_;
        memory::set_poison(poison_);
    }
    CheckRules(const CheckRules&) = delete;
    CheckRules& operator=(const CheckRules&) = delete;

private:
    Checks before_;
    bool poison_ = memory::set_poison(true);
};

namespace check {

[[noreturn]] void fail_written(const char* op, const std::string& form);
[[noreturn]] void fail_given(const char* op, std::size_t which);
[[noreturn]] void fail_nothing(const char* op, std::size_t input);
[[noreturn]] void fail_unset(const char* op, std::size_t input, std::size_t elements);
[[noreturn]] void fail_unadded(const char* op, std::size_t input, std::size_t elements);

// ---- the bytes of numbers and arrays ----

template <class X>
std::uint64_t sum(const X& x) {
    return ready(x) ? checksum(x) : 0;
}

template <class X>
concept Buffered = requires(X& x) {
    x.storage();
};

// What a rule keeps, before it is called.
template <class X>
void expect_unwritten(const char* op, const X& kept) {
    if constexpr (Buffered<const X>)
        if (kept.storage() && memory::changed_since_saved(kept.storage())) fail_written(op, form(kept));
}

template <class X>
void poison(X& x) {
    if constexpr (Buffered<X>)
        memory::poison(x.storage());
    else
        std::memset(static_cast<void*>(&x), 0xFF, sizeof x);
}

// Without others who would see it poisoned.
template <class X>
bool may_poison(const X& x) {
    if constexpr (Buffered<const X>)
        return x.storage() && memory::holders(x.storage()) == 1;
    else
        return true;
}

template <class X>
auto elements(const X& x) {
    if constexpr (Buffered<const X>)
        return x.to_vector();
    else
        return std::vector<X>{x};
}

template <class S>
bool is_poison(const S& x) {
    S poisoned;
    std::memset(static_cast<void*>(&poisoned), 0xFF, sizeof x);
    return std::memcmp(&x, &poisoned, sizeof x) == 0;
}
template <class S>
bool is_nan(const S& x) {
    if constexpr (is_dual<S>)
        return std::isnan(x.value);
    else
        return std::isnan(x);
}

// ---- one rule ----

// Before: where it has to set, what is there is poisoned. After: it has set all of it.
template <class Node>
void poison_untouched(std::span<Node* const> inputs) {
    for (Node* input : inputs)
        if (input && !input->touched && may_poison(input->gradient)) poison(input->gradient);
}
template <class Node>
void expect_set(const char* op, std::span<Node* const> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Node* const input = inputs[i];
        if (!input || input->touched != Node::asked) continue;
        if (!ready(input->gradient)) fail_nothing(op, i);
        std::size_t unset = 0;
        for (const auto& each : elements(input->gradient)) unset += is_poison(each) ? 1 : 0;
        if (unset) fail_unset(op, i, unset);
    }
}

// Calls the rule once more, on gradients that are there already, all NaN: what is added to a NaN is NaN.
template <class Node, class Rule>
void expect_added(const char* op, std::span<Node* const> inputs, Rule rule) {
    struct Scratch {
        std::vector<Node*> nodes;
        ~Scratch() {
            for (Node* node : nodes)
                if (node) let_go_of(node);
        }
    } scratch;
    for (Node* input : inputs) {
        scratch.nodes.push_back(nullptr);
        if (!input) continue;
        Node* const node = new (pool::take(sizeof(Node))) Node(unwritten_like(input->value), State::leaf);
        scratch.nodes.back() = node;
        if constexpr (Buffered<decltype(node->gradient)>) node->gradient.materialise();
        poison(node->gradient);
        node->touched = true;
    }
    rule(scratch.nodes.data());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!scratch.nodes[i]) continue;
        std::size_t assigned = 0;
        for (const auto& each : elements(scratch.nodes[i]->gradient)) assigned += is_nan(each) ? 0 : 1;
        if (assigned) fail_unadded(op, i, assigned);
    }
}

}  // namespace check
}  // namespace tally
