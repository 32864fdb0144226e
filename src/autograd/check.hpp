// CheckRules: does a rule leave alone what it was given, and write its gradients as it was told?
//
//     const CheckRules check;   // on this thread, while it lives
//     loss.backward();          // an Error names the operation, and what its rule did
//
// gradcheck makes one. It is not on by itself: a rule that is checked takes more memory. A library built for
// debugging (without NDEBUG) always checks what it can without a byte of the ledger, on the CPU: whether
// somebody wrote to what is kept for the way back, and the rules of custom().
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tally/autograd/node.hpp"
#include "tally/base/error.hpp"
#include "tally/memory/memory.hpp"
#include "tally/values/scalar.hpp"

namespace tally {

// What is saved for the way back while one lives is compared, too. Fresh memory is filled with NaN meanwhile.
class CheckRules {
public:
    CheckRules() : before_((this_thread(), set_checks(Checks::all))) { memory::poison_meanwhile(true); }
    ~CheckRules() {
        set_checks(before_);
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

template <class X> std::uint64_t sum(const X& x) { return ready(x) ? checksum(x) : 0; }

template <class X>
concept Buffered = requires(X& x) {
    x.storage();
};

// What a rule keeps, before it is called.
template <class X> void expect_unwritten(const char* op, const X& kept) {
    if constexpr (Buffered<const X>)
        if (kept.storage() && memory::changed_since_saved(kept.storage())) fail_written(op, form(kept));
}

template <class X> void poison(X& x) {
    if constexpr (Buffered<X>)
        memory::poison(x.storage());
    else
        std::memset(static_cast<void*>(&x), 0xFF, sizeof x);
}

// Nobody else would see it poisoned.
template <class X> bool alone(const X& x) {
    if constexpr (Buffered<const X>)
        return x.storage() && memory::holders(x.storage()) == 1;
    else
        return true;
}

template <class X> bool on_cpu(const X& x) {
    if constexpr (Buffered<const X>)
        return x.device() == Device::cpu;
    else
        return true;
}

template <class X> std::span<std::byte> bytes_of(X& x) {
    if constexpr (Buffered<X>)
        return std::as_writable_bytes(std::span(x.raw(), x.size()));
    else
        return std::as_writable_bytes(std::span(&x, 1));
}

// Beside what is kept: are this rule's calls looked at?
template <class X> bool looks_at(const X& dy, bool custom) {
    return context.checks == Checks::all || (custom && on_cpu(dy));
}

template <class X> auto elements(const X& x) {
    if constexpr (Buffered<const X>)
        return x.to_vector();
    else
        return std::vector<X>{x};
}

template <class S> bool is_poison(const S& x) {
    S poisoned;
    std::memset(static_cast<void*>(&poisoned), 0xFF, sizeof x);
    return std::memcmp(&x, &poisoned, sizeof x) == 0;
}
template <class S> bool is_nan(const S& x) {
    if constexpr (is_dual<S>)
        return std::isnan(x.value);
    else
        return std::isnan(x);
}

// The calls of one operation's rule: one on trial, where it must be seen to add, then the one that counts.
// `Node` is a ValueNode.
template <class Node> class Rule {
    using Value = decltype(Node::gradient);

public:
    template <class Inputs>
    Rule(const char* op, const Inputs& inputs, std::vector<std::uint64_t> given, const Value& dy, bool target)
        : op_(op),
          inputs_(inputs.begin(), inputs.end()),
          given_(std::move(given)),
          all_(context.checks == Checks::all),
          dy_is_spent_(!all_ && !target && alone(dy)),
          thread_(context.thread) {}
    Rule(const Rule&) = delete;
    Rule& operator=(const Rule&) = delete;
    [[gnu::cold, gnu::noinline]] ~Rule() { put_back(); }

    [[gnu::cold, gnu::noinline]] void begin() {
        if (std::exchange(context.trying, true) && wants_trial())
            set_aside();
        else
            poison_unset();
    }

    // Whether the next call may write over dy, which nobody reads: as without checks, unless on trial.
    [[gnu::cold, gnu::noinline]] bool spare() const { return !all_ && before_.empty(); }

    // After a call; `given` are the sums now. Whether the rule is to be called once more.
    [[gnu::cold, gnu::noinline]] bool go_on(const std::vector<std::uint64_t>& given) {
        for (std::size_t i = spare() && dy_is_spent_ ? 1 : 0; i < given.size(); ++i)
            if (given[i] != given_[i]) fail_given(op_, i);
        if (before_.empty()) {
            expect_set();
            return false;
        }
        expect_added();
        for (const Before& each : before_)
            if (each.adds) own(each.node->gradient);
        put_back();
        poison_unset();
        return true;
    }
    // After an exception: whether all it says is that the rule cannot be tried; then the next is not.
    bool breaks_off() const {
        try {
            throw;
        } catch (const OnTrial&) {
            context.trying = before_.empty();
            return !context.trying;
        } catch (...) {
            return false;
        }
    }

private:
    // What an input had before the trial: its gradient, or its bytes where the ledger must not count more.
    struct Before {
        Node* node;
        std::size_t input;
        std::uint8_t touched;
        bool adds, ready;
        Value gradient;
        std::vector<std::byte> bytes;
    };

    bool wants_trial() const {
        if (all_) return true;
        const auto reached = [](const Node* input) { return !input || on_cpu(input->gradient); };
        const auto adds = [](const Node* input) { return input && input->has_gradient(); };
        return std::all_of(inputs_.begin(), inputs_.end(), reached) &&
               std::any_of(inputs_.begin(), inputs_.end(), adds);
    }

    // Gradients that are there already, all NaN: what is added to a NaN is NaN.
    void set_aside() {
        before_.reserve(inputs_.size());
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            Node* const node = inputs_[i];
            const auto same = [node](const Before& each) { return each.node == node; };
            if (!node || std::any_of(before_.begin(), before_.end(), same)) continue;
            const bool adds = all_ || node->has_gradient();
            if (!all_ && adds) own(node->gradient);  // as into() would
            Before& before = before_.emplace_back(
                Before{node, i, node->touched, adds, ready(node->gradient), unwritten_like(node->value), {}});
            if (all_) {
                std::swap(before.gradient, node->gradient);
                if constexpr (Buffered<Value>) node->gradient.materialise();
                node->touched |= touch::arrived;
            } else if (adds) {
                const std::span<std::byte> bytes = bytes_of(node->gradient);
                before.bytes.assign(bytes.begin(), bytes.end());
            }
            if (adds) poison(node->gradient);
        }
        if (!before_.empty()) context.thread = thread_on_trial;
    }
    // Also after an error, when a gradient may be what no rule of this library leaves.
    void put_back() {
        if (!before_.empty()) context.thread = thread_;
        for (Before& before : before_) {
            Value& gradient = before.node->gradient;
            if (all_) {
                gradient = std::move(before.gradient);
            } else if (before.adds) {
                if (alone(gradient) && bytes_of(gradient).size() == before.bytes.size())
                    std::copy(before.bytes.begin(), before.bytes.end(), bytes_of(gradient).begin());
            } else if (!before.ready) {
                let_go(gradient);
            }
            before.node->touched =
                static_cast<std::uint8_t>(before.touched | (before.node->touched & touch::met));
        }
        before_.clear();
    }
    void expect_added() const {
        for (const Before& before : before_) {
            if (!before.adds) continue;
            std::size_t assigned = 0;
            for (const auto& each : elements(before.node->gradient)) assigned += is_nan(each) ? 0 : 1;
            if (assigned) fail_unadded(op_, before.input, assigned);
        }
    }

    void poison_unset() const {
        for (Node* const input : inputs_)
            if (input && !input->has_gradient() && alone(input->gradient)) poison(input->gradient);
    }
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

    const char* op_;
    std::vector<Node*> inputs_;
    std::vector<std::uint64_t> given_;
    std::vector<Before> before_;  // empty: not on trial
    bool all_, dy_is_spent_;
    std::uint32_t thread_;
};

}  // namespace rule_check
}  // namespace tally
