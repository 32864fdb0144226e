// A rule on trial: does it leave alone what it was given, and write its gradients as it was told? Here values
// and gradients are known, and no graph.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tally/array/gradient.hpp"
#include "tally/array/scalar.hpp"
#include "tally/base/error.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

namespace watching {

inline constinit thread_local bool checks = false;  // of every rule, by CheckRules
inline constinit thread_local bool can_be_checked =
    true;  // false: the rule that is called next cannot be tried

inline bool set_checks(bool wanted) {  // returns what was set before
    memory::detail::checksum_saved = wanted;
    return std::exchange(checks, wanted);
}

}  // namespace watching

namespace detail {
// What a rule on trial belongs to: it may make graphs of its own, but touch none that was there.
inline constexpr std::uint32_t thread_during_check = ~std::uint32_t{0};
class DuringCheck : public Error {
    using Error::Error;
};
}  // namespace detail

namespace rule_check {

[[noreturn]] void fail_written(const char* op, const std::string& form);
[[noreturn]] void fail_given(const char* op, std::size_t which);
[[noreturn]] void fail_nothing(const char* op, std::size_t input);
[[noreturn]] void fail_unset(const char* op, std::size_t input, std::size_t elements);
[[noreturn]] void fail_unadded(const char* op, std::size_t input, std::size_t elements);

// ---- the bytes of numbers and arrays ----

template <class X> std::uint64_t sum(const X& x) { return detail::has_memory(x) ? detail::checksum(x) : 0; }

template <class X>
concept Buffered = requires(X& x) {
    x.storage();
};

// What a rule keeps, before it is called.
template <class X> void expect_unwritten(const char* op, const X& kept) {
    if constexpr (Buffered<const X>)
        if (kept.storage() && memory::detail::changed_since_saved(kept.storage()))
            fail_written(op, detail::describe(kept));
}

template <class X> void poison(X& x) {
    if constexpr (Buffered<X>)
        memory::detail::poison(x.storage());
    else
        std::memset(static_cast<void*>(&x), 0xFF, sizeof x);
}

// Nobody else would see it poisoned.
template <class X> bool is_unique(const X& x) {
    if constexpr (Buffered<const X>)
        return x.storage() && memory::detail::ref_count(x.storage()) == 1;
    else
        return true;
}

template <class X> auto elements(const X& x) {
    if constexpr (Buffered<const X>)
        return x.to_vector();
    else
        return std::vector<X>{x};
}

template <class S> bool is_poisoned(const S& x) {
    S poisoned;
    std::memset(static_cast<void*>(&poisoned), 0xFF, sizeof x);
    return std::memcmp(&x, &poisoned, sizeof x) == 0;
}
template <class S> bool is_nan(const S& x) {
    if constexpr (detail::is_dual<S>)
        return std::isnan(x.value);
    else
        return std::isnan(x);
}

// A rule that is about to be called.
template <class T> struct BackwardCall {
    const char* op;
    const T& dy;                              // which it is given
    std::vector<detail::GradientView<T>> to;  // the gradients of the inputs
    std::uint32_t& thread;                    // to which graphs must belong that it touches
};

// The calls of one operation's rule: one on trial, where it must be seen to add, then the one that counts.
template <class T> class BackwardCheck {
public:
    BackwardCheck(const BackwardCall<T>& rule, std::vector<std::uint64_t> given)
        : rule_(rule), given_(std::move(given)), thread_(rule.thread) {}
    BackwardCheck(const BackwardCheck&) = delete;
    BackwardCheck& operator=(const BackwardCheck&) = delete;
    [[gnu::cold, gnu::noinline]] ~BackwardCheck() { restore(); }

    [[gnu::cold, gnu::noinline]] void begin() {
        if (std::exchange(watching::can_be_checked, true))
            stash();
        else
            poison_unset();
    }

    // After a call; `given` are the sums now. Whether the rule is to be called once more.
    [[gnu::cold, gnu::noinline]] bool next_round(const std::vector<std::uint64_t>& given) {
        for (std::size_t i = 0; i < given.size(); ++i)
            if (given[i] != given_[i]) fail_given(rule_.op, i);
        if (before_.empty()) {
            expect_set();
            return false;
        }
        expect_added();
        restore();
        poison_unset();
        return true;
    }
    // After an exception: whether all it says is that the rule cannot be tried; then the next is not.
    bool is_untestable() const {
        try {
            throw;
        } catch (const detail::DuringCheck&) {
            watching::can_be_checked = before_.empty();
            return !watching::can_be_checked;
        } catch (...) {
            return false;
        }
    }

private:
    // What an input had before the trial.
    struct Before {
        detail::GradientView<T> to;
        std::size_t input;
        std::uint8_t grad_flags;
        T gradient;
    };

    // Gradients that are there already, all NaN: what is added to a NaN is NaN.
    void stash() {
        before_.reserve(rule_.to.size());
        for (std::size_t i = 0; i < rule_.to.size(); ++i) {
            const detail::GradientView<T> to = rule_.to[i];
            bool seen = false;
            for (const Before& each : before_) seen = seen || each.to.gradient == to.gradient;
            if (!to || seen) continue;
            Before& before =
                before_.emplace_back(Before{to, i, *to.grad_flags, detail::like_without_memory(*to.value)});
            std::swap(before.gradient, *to.gradient);
            if constexpr (Buffered<T>) to.gradient->allocate();
            *to.grad_flags |= grad_flag::present;
            poison(*to.gradient);
        }
        if (!before_.empty()) rule_.thread = detail::thread_during_check;
    }
    // Also after an error, when a gradient may be what no rule of this library leaves.
    void restore() {
        if (!before_.empty()) rule_.thread = thread_;
        for (Before& before : before_) {
            *before.to.gradient = std::move(before.gradient);
            *before.to.grad_flags = static_cast<std::uint8_t>(
                before.grad_flags | (*before.to.grad_flags & grad_flag::written_since_check));
        }
        before_.clear();
    }
    void expect_added() const {
        for (const Before& before : before_) {
            std::size_t assigned = 0;
            for (const auto& each : elements(*before.to.gradient)) assigned += is_nan(each) ? 0 : 1;
            if (assigned) fail_unadded(rule_.op, before.input, assigned);
        }
    }

    void poison_unset() const {
        for (const detail::GradientView<T>& to : rule_.to)
            if (to && !to.is_present() && is_unique(*to.gradient)) poison(*to.gradient);
    }
    void expect_set() const {
        for (std::size_t i = 0; i < rule_.to.size(); ++i) {
            const detail::GradientView<T>& to = rule_.to[i];
            if (!to || !(*to.grad_flags & grad_flag::first_write)) continue;
            if (!detail::has_memory(*to.gradient)) fail_nothing(rule_.op, i);
            std::size_t unset = 0;
            for (const auto& each : elements(*to.gradient)) unset += is_poisoned(each) ? 1 : 0;
            if (unset) fail_unset(rule_.op, i, unset);
        }
    }

    const BackwardCall<T>& rule_;
    std::vector<std::uint64_t> given_;
    std::vector<Before> before_;  // empty: not on trial
    std::uint32_t thread_;
};

// Calls a rule by `call()`; `with_kept(f)` hands f what it keeps. False: it could not be tried, and next
// time it is not.
template <class T, class WithKept, class Call>
[[gnu::cold, gnu::noinline]] bool run_checked(const BackwardCall<T>& rule, const WithKept& with_kept,
                                              const Call& call) {
    with_kept([&](const auto&... kept) { (expect_unwritten(rule.op, kept), ...); });
    const auto sums = [&] {  // of all that it is given
        return with_kept([&](const auto&... kept) { return std::vector{sum(rule.dy), sum(kept)...}; });
    };
    BackwardCheck<T> check(rule, sums());
    check.begin();
    try {
        do call();
        while (check.next_round(sums()));
    } catch (...) {
        if (!check.is_untestable()) throw;
        return false;
    }
    return true;
}

}  // namespace rule_check
}  // namespace tally
