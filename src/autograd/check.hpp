// CheckRules: does a rule leave alone what it was given, and write its gradients as it was told?
//
//     const CheckRules check;   // on this thread, while it lives
//     loss.backward();          // an Error names the operation, and what its rule did
//
// gradcheck makes one. It is not on by itself: a rule that is checked takes more memory.
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
    CheckRules() : before_((this_thread(), std::exchange(context.checks, Checks::all))) {
        memory::poison_meanwhile(true);
    }
    ~CheckRules() {
        context.checks = before_;
        memory::poison_meanwhile(false);
    }
    CheckRules(const CheckRules&) = delete;
    CheckRules& operator=(const CheckRules&) = delete;

private:
    Checks before_;
};

namespace rule_check {

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

// One call of an operation's rule, and a second one where it must be seen to add. `Node` is a ValueNode.
template <class Node>
class Rule {
public:
    // What is to be set is poisoned.
    template <class Inputs>
    Rule(const char* op, const Inputs& inputs, std::vector<std::uint64_t> given, bool custom)
        : op_(op), inputs_(inputs.begin(), inputs.end()), given_(std::move(given)) {
        adds_ = context.checks == Checks::all;
        for (Node* input : inputs_) {
            if (!input) continue;
            if (input->has_gradient())
                adds_ = adds_ || custom;
            else if (may_poison(input->gradient))
                poison(input->gradient);
        }
    }
    Rule(const Rule&) = delete;
    Rule& operator=(const Rule&) = delete;
    ~Rule() {
        for (Node* node : scratch_)
            if (node) let_go_of(node);
    }

    // After a call; `given` are the sums now. Where the rule is to write once more, or null.
    Node* const* go_on(const std::vector<std::uint64_t>& given) {
        for (std::size_t i = 0; i < given.size(); ++i)
            if (given[i] != given_[i]) fail_given(op_, i);
        if (!scratch_.empty()) {
            expect_added();
            return nullptr;
        }
        expect_set();
        if (!adds_) return nullptr;
        make_scratch();
        return scratch_.data();
    }

private:
    void expect_set() const {
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            const Node* const input = inputs_[i];
            if (!input || !(input->touched & touch::asked)) continue;
            if (!ready(input->gradient)) fail_nothing(op_, i);
            std::size_t unset = 0;
            for (const auto& each : elements(input->gradient)) unset += is_poison(each) ? 1 : 0;
            if (unset) fail_unset(op_, i, unset);
        }
    }
    // Gradients that are there already, all NaN: what is added to a NaN is NaN.
    void make_scratch() {
        for (Node* input : inputs_) {
            scratch_.push_back(nullptr);
            if (!input) continue;
            Node* const node = new (pool::take(sizeof(Node))) Node(unwritten_like(input->value), State::leaf);
            scratch_.back() = node;
            if constexpr (Buffered<decltype(node->gradient)>) node->gradient.materialise();
            poison(node->gradient);
            node->touched = touch::arrived;
        }
    }
    void expect_added() const {
        for (std::size_t i = 0; i < scratch_.size(); ++i) {
            if (!scratch_[i]) continue;
            std::size_t assigned = 0;
            for (const auto& each : elements(scratch_[i]->gradient)) assigned += is_nan(each) ? 0 : 1;
            if (assigned) fail_unadded(op_, i, assigned);
        }
    }

    const char* op_;
    std::vector<Node*> inputs_, scratch_;
    std::vector<std::uint64_t> given_;
    bool adds_;
};

}  // namespace rule_check
}  // namespace tally
