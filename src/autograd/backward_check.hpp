// BackwardCheck checks that a backward function does not change dy or its saved values, and that it writes
// gradients as into() requires. This header does not depend on the graph.
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

inline constinit thread_local bool checks = false;  // CheckRules sets it to check every backward function
inline constinit thread_local bool can_be_checked = true;  // false: the next check skips the first round

// Also makes saved buffers keep a checksum. Returns the previous setting.
inline bool set_checks(bool enabled) {
    memory::detail::checksum_saved = enabled;
    return std::exchange(checks, enabled);
}

}  // namespace watching

namespace detail {
// Replaces the thread id in the first round. No graph has this id, so the use of a graph throws DuringCheck.
inline constexpr std::uint32_t thread_during_check = ~std::uint32_t{0};
class DuringCheck : public Error {
    using Error::Error;
};
}  // namespace detail

namespace backward_check {

[[noreturn]] void fail_written(const char* op, const std::string& description);
[[noreturn]] void fail_given(const char* op, std::size_t which);
[[noreturn]] void fail_nothing(const char* op, std::size_t input);
[[noreturn]] void fail_unset(const char* op, std::size_t input, std::size_t elements);
[[noreturn]] void fail_unadded(const char* op, std::size_t input, std::size_t elements);

// ---- helpers for values that may be numbers or arrays ----

template <class X> std::uint64_t sum(const X& x) { return detail::has_memory(x) ? detail::checksum(x) : 0; }

template <class X>
concept Buffered = requires(X& x) {
    x.storage();
};

// Throws if a saved value was changed without a new version.
template <class X> void require_unmodified(const char* op, const X& saved) {
    if constexpr (Buffered<const X>)
        if (saved.storage() && memory::detail::changed_since_saved(saved.storage()))
            fail_written(op, detail::describe(saved));
}

template <class X> void poison(X& x) {  // fills x with bytes 0xFF, a NaN that no computation gives
    if constexpr (Buffered<X>)
        memory::detail::poison(x.storage());
    else
        std::memset(static_cast<void*>(&x), 0xFF, sizeof x);
}

// Returns whether no other array shares the buffer, so that x can be poisoned.
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

// One call of a backward function.
template <class T> struct BackwardCall {
    const char* op;
    const T& dy;
    std::vector<detail::GradientView<T>> to;  // the gradients of the inputs
    std::uint32_t& thread;                    // context.thread_id, which the first round replaces
};

// Prepares and checks the two rounds of run_checked(). The first round adds to gradients that are NaN, which
// must stay NaN. The second round computes the real gradients and must set each element of a new gradient.
template <class T> class BackwardCheck {
public:
    // `checksums` are those of dy and the saved values before the call.
    BackwardCheck(const BackwardCall<T>& call, std::vector<std::uint64_t> checksums)
        : call_(call), checksums_(std::move(checksums)), thread_(call.thread) {}
    BackwardCheck(const BackwardCheck&) = delete;
    BackwardCheck& operator=(const BackwardCheck&) = delete;
    [[gnu::cold, gnu::noinline]] ~BackwardCheck() { restore(); }

    [[gnu::cold, gnu::noinline]] void begin() {
        if (std::exchange(watching::can_be_checked, true))
            stash();
        else
            poison_unset();
    }

    // Checks the round that ended, given the present checksums. Returns whether another round is needed.
    [[gnu::cold, gnu::noinline]] bool next_round(const std::vector<std::uint64_t>& checksums) {
        for (std::size_t i = 0; i < checksums.size(); ++i)
            if (checksums[i] != checksums_[i]) fail_given(call_.op, i);
        if (before_.empty()) {
            require_set();
            return false;
        }
        require_added();
        restore();
        poison_unset();
        return true;
    }
    // Call this in a catch block. Returns whether only the first round failed, because the function uses an
    // existing graph. If so, the next run_checked() skips the first round.
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
    // The gradient of an input before the first round.
    struct Before {
        detail::GradientView<T> to;
        std::size_t input;
        std::uint8_t grad_flags;
        T gradient;
    };

    // Replaces all gradients by NaN and marks them as present, so that the function must add to them.
    void stash() {
        before_.reserve(call_.to.size());
        for (std::size_t i = 0; i < call_.to.size(); ++i) {
            const detail::GradientView<T> to = call_.to[i];
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
        if (!before_.empty()) call_.thread = detail::thread_during_check;
    }
    // Restores the gradients, also after an error.
    void restore() {
        if (!before_.empty()) call_.thread = thread_;
        for (Before& before : before_) {
            *before.to.gradient = std::move(before.gradient);
            *before.to.grad_flags = static_cast<std::uint8_t>(
                before.grad_flags | (*before.to.grad_flags & grad_flag::dirty_for_window));
        }
        before_.clear();
    }
    void require_added() const {
        for (const Before& before : before_) {
            std::size_t assigned = 0;
            for (const auto& each : elements(*before.to.gradient)) assigned += is_nan(each) ? 0 : 1;
            if (assigned) fail_unadded(call_.op, before.input, assigned);
        }
    }

    void poison_unset() const {
        for (const detail::GradientView<T>& to : call_.to)
            if (to && !to.is_present() && is_unique(*to.gradient)) poison(*to.gradient);
    }
    void require_set() const {
        for (std::size_t i = 0; i < call_.to.size(); ++i) {
            const detail::GradientView<T>& to = call_.to[i];
            if (!to || !(*to.grad_flags & grad_flag::first_write)) continue;
            if (!detail::has_memory(*to.gradient)) fail_nothing(call_.op, i);
            std::size_t unset = 0;
            for (const auto& each : elements(*to.gradient)) unset += is_poisoned(each) ? 1 : 0;
            if (unset) fail_unset(call_.op, i, unset);
        }
    }

    const BackwardCall<T>& call_;
    std::vector<std::uint64_t> checksums_;
    std::vector<Before> before_;  // empty in the second round
    std::uint32_t thread_;
};

// Checks a backward function, which run() calls. with_saved(f) passes the saved values to f. Returns false if
// the first round is impossible. The caller must then call run_checked() again.
template <class T, class WithSaved, class Run>
[[gnu::cold, gnu::noinline]] bool run_checked(const BackwardCall<T>& call, const WithSaved& with_saved,
                                              const Run& run) {
    with_saved([&](const auto&... saved) { (require_unmodified(call.op, saved), ...); });
    const auto checksums = [&] {
        return with_saved([&](const auto&... saved) { return std::vector{sum(call.dy), sum(saved)...}; });
    };
    BackwardCheck<T> check(call, checksums());
    check.begin();
    try {
        do run();
        while (check.next_round(checksums()));
    } catch (...) {
        if (!check.is_untestable()) throw;
        return false;
    }
    return true;
}

}  // namespace backward_check
}  // namespace tally
