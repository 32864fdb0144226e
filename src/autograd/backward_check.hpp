// Checks that a backward function does not change dy or saved values, and writes gradients correctly.
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

namespace instrumentation {

inline constinit thread_local bool checks = false;  // CheckRules sets it to check every backward function
// If true, the next run_checked() omits the round in which all gradients are NaN (see BackwardCheck).
inline constinit thread_local bool skip_first_round = false;

inline bool set_checks(bool enabled) {  // also adds checksums to saved buffers; returns the old value
    memory::detail::checksum_saved = enabled;
    return std::exchange(checks, enabled);
}

}  // namespace instrumentation

namespace detail {
// Replaces context.thread_id in the first round of a check, so that any use of an earlier graph throws.
inline constexpr std::uint32_t graphless_thread_id = ~std::uint32_t{0};
class GraphUsedDuringCheck : public Error {
    using Error::Error;
};
}  // namespace detail

namespace backward_check {

[[noreturn]] void throw_saved_modified(const char* op, const std::string& description);
[[noreturn]] void throw_read_only_modified(const char* op, std::size_t index);  // 0: dy; i + 1: saved value i
[[noreturn]] void throw_nothing_written(const char* op, std::size_t input);
[[noreturn]] void throw_not_fully_set(const char* op, std::size_t input, std::size_t elements);
[[noreturn]] void throw_assigned_instead_of_added(const char* op, std::size_t input, std::size_t elements);

// ---- helpers for values that may be numbers or arrays ----

template <class X> auto checksum_or_0(const X& x) { return detail::has_memory(x) ? detail::checksum(x) : 0; }

template <class X>
concept Buffered = requires(X& x) {
    x.storage();
};

// Throws Error if a saved value has changed but its version has not.
template <class X> void require_unmodified(const char* op, const X& saved) {
    if constexpr (Buffered<const X>)
        if (saved.storage() && memory::detail::changed_since_saved(saved.storage()))
            throw_saved_modified(op, detail::describe(saved));
}

template <class X> void poison(X& x) {  // fills x with 0xFF bytes, which are a NaN that no computation gives
    if constexpr (Buffered<X>)
        memory::detail::poison(x.storage());
    else
        std::memset(static_cast<void*>(&x), 0xFF, sizeof x);
}

// Returns whether only x uses the buffer, so that poison(x) changes no other array.
template <class X> bool has_single_ref(const X& x) {
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

// BackwardCall describes one call of a backward function.
template <class T> struct BackwardCall {
    const char* op;
    const T& dy;
    std::vector<detail::GradientRef<T>> grads;  // the gradients of the inputs
    std::uint32_t& thread_id;                   // context.thread_id, which the first round replaces
};

// Prepares and checks the two rounds of run_checked(). In the first round, all gradients are NaN and must
// stay NaN. The second round computes the real gradients and must set each element of a new gradient.
template <class T> class BackwardCheck {
public:
    // `checksums` are the checksums of dy and of the saved values before the call.
    BackwardCheck(const BackwardCall<T>& call, std::vector<std::uint64_t> checksums)
        : call_(call), checksums_(std::move(checksums)), thread_id_(call.thread_id) {}
    BackwardCheck(const BackwardCheck&) = delete;
    BackwardCheck& operator=(const BackwardCheck&) = delete;
    [[gnu::cold, gnu::noinline]] ~BackwardCheck() { restore(); }

    [[gnu::cold, gnu::noinline]] void begin() {
        if (std::exchange(instrumentation::skip_first_round, false))
            poison_unset();
        else
            stash();
    }

    // Checks the round that has ended, given the new checksums. Returns whether a second round must follow.
    [[gnu::cold, gnu::noinline]] bool next_round(const std::vector<std::uint64_t>& checksums) {
        for (std::size_t i = 0; i < checksums.size(); ++i)
            if (checksums[i] != checksums_[i]) throw_read_only_modified(call_.op, i);
        if (stashed_.empty()) {
            require_set();
            return false;
        }
        require_added();
        restore();
        poison_unset();
        return true;
    }
    // Call this in a catch block. Returns true if the first round threw because the function uses an existing
    // graph. The next run_checked() then skips the first round.
    bool retry_without_first_round() {
        try {
            throw;
        } catch (const detail::GraphUsedDuringCheck&) {
            instrumentation::skip_first_round = !stashed_.empty();
            return instrumentation::skip_first_round;
        } catch (...) {
            return false;
        }
    }

private:
    // SavedGradient holds the gradient of an input before the first round.
    struct SavedGradient {
        detail::GradientRef<T> grad;
        std::size_t input;
        std::uint8_t grad_flags;
        T before;
    };

    // Replaces all gradients by NaN and marks them as present, so that the function must add to them.
    void stash() {
        stashed_.reserve(call_.grads.size());
        for (std::size_t i = 0; i < call_.grads.size(); ++i) {
            const detail::GradientRef<T> grad = call_.grads[i];
            bool seen = false;
            for (const SavedGradient& each : stashed_) seen = seen || each.grad.gradient == grad.gradient;
            if (!grad || seen) continue;
            SavedGradient& stashed = stashed_.emplace_back(
                SavedGradient{grad, i, *grad.grad_flags, detail::like_without_memory(*grad.value)});
            std::swap(stashed.before, *grad.gradient);
            if constexpr (Buffered<T>) grad.gradient->allocate();
            *grad.grad_flags |= grad_flag::present;
            poison(*grad.gradient);
        }
        if (!stashed_.empty()) call_.thread_id = detail::graphless_thread_id;
    }
    // Restores the gradients after the first round, even after an error.
    void restore() {
        if (!stashed_.empty()) call_.thread_id = thread_id_;
        for (SavedGradient& stashed : stashed_) {
            *stashed.grad.gradient = std::move(stashed.before);
            *stashed.grad.grad_flags = static_cast<std::uint8_t>(
                stashed.grad_flags | (*stashed.grad.grad_flags & grad_flag::dirty_for_window));
        }
        stashed_.clear();
    }
    void require_added() const {
        for (const SavedGradient& stashed : stashed_) {
            std::size_t no_longer_nan = 0;
            for (const auto& each : elements(*stashed.grad.gradient)) no_longer_nan += is_nan(each) ? 0 : 1;
            if (no_longer_nan) throw_assigned_instead_of_added(call_.op, stashed.input, no_longer_nan);
        }
    }

    void poison_unset() const {
        for (const detail::GradientRef<T>& grad : call_.grads)
            if (grad && !grad.is_present() && has_single_ref(*grad.gradient)) poison(*grad.gradient);
    }
    void require_set() const {
        for (std::size_t i = 0; i < call_.grads.size(); ++i) {
            const detail::GradientRef<T>& grad = call_.grads[i];
            if (!grad || !(*grad.grad_flags & grad_flag::first_write)) continue;
            if (!detail::has_memory(*grad.gradient)) throw_nothing_written(call_.op, i);
            std::size_t unset = 0;
            for (const auto& each : elements(*grad.gradient)) unset += is_poisoned(each) ? 1 : 0;
            if (unset) throw_not_fully_set(call_.op, i, unset);
        }
    }

    const BackwardCall<T>& call_;
    std::vector<std::uint64_t> checksums_;
    std::vector<SavedGradient> stashed_;  // empty in the second round
    std::uint32_t thread_id_;
};

// Checks the backward function that run() calls. with_saved(f) passes the saved values to f. Returns false if
// the first round is impossible, and the caller must call run_checked() again.
template <class T, class WithSaved, class Run>
[[gnu::cold, gnu::noinline]] bool run_checked(const BackwardCall<T>& call, const WithSaved& with_saved,
                                              const Run& run) {
    with_saved([&](const auto&... saved) { (require_unmodified(call.op, saved), ...); });
    const auto list = [&](const auto&... saved) {
        return std::vector{checksum_or_0(call.dy), checksum_or_0(saved)...};
    };
    const auto checksums = [&] { return with_saved(list); };
    BackwardCheck<T> check(call, checksums());
    check.begin();
    try {
        do run();
        while (check.next_round(checksums()));
    } catch (...) {
        if (!check.retry_without_first_round()) throw;
        return false;
    }
    return true;
}

}  // namespace backward_check
}  // namespace tally
