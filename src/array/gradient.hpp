// The flags of a gradient record whether the gradient has been written and who may modify the gradient.
#pragma once

#include <cstdint>
#include <string>

#include "tally/array/value.hpp"
#include "tally/base/scoped_value.hpp"

namespace tally {

namespace grad_flag {
inline constexpr std::uint8_t present = 1;  // the gradient has been written
// The backward function that is running created this gradient, so BackwardPass clears the gradient if the
// function throws. BackwardPass clears the flag of a function's leaf inputs before it calls the function.
inline constexpr std::uint8_t first_write = 16;
// A Window sets `locked` on its parameters, and `backward_locked` too if the window itself runs backward().
inline constexpr std::uint8_t locked = 2;            // only the window may modify, clear or step the leaf
inline constexpr std::uint8_t backward_locked = 4;   // only the window may run backward() into it
inline constexpr std::uint8_t dirty_for_window = 8;  // a pass has written since ParameterLock::snapshot()
inline constexpr std::uint8_t has_deferred = 32;     // call add_deferred() before any access to the gradient
inline constexpr std::uint8_t escaped = 64;  // a caller may hold a reference, so additions are not deferred
inline constexpr std::uint8_t holds_average = 128;  // MovingAverage::swap() has replaced the value
}  // namespace grad_flag

namespace detail {
// Stores the flags that an UnlockScope suspends on this thread.
inline constinit thread_local std::uint8_t ignored_flags = 0;

// A Window or MovingAverage opens an UnlockScope to make changes that the flags would otherwise reject.
struct UnlockScope : private ScopedValue<std::uint8_t> {
    explicit UnlockScope(std::uint8_t flags)
        : ScopedValue(ignored_flags, static_cast<std::uint8_t>(ignored_flags | flags)) {}
};

// The load is atomic because other threads may change has_deferred and escaped at the same time.
[[gnu::always_inline]] inline std::uint8_t load_flags(const std::uint8_t& grad_flags) {
    return __atomic_load_n(&grad_flags, __ATOMIC_ACQUIRE);
}

inline bool is_locked(std::uint8_t grad_flags) { return grad_flags & grad_flag::locked & ~ignored_flags; }
inline bool is_backward_locked(std::uint8_t grad_flags) {
    return grad_flags & grad_flag::backward_locked & ~ignored_flags;
}
[[noreturn]] void throw_locked(const char* call, const std::string& description);

// Counts this thread's outermost backward passes. All passes of one cached_backward() count as one.
inline constinit thread_local std::uint64_t backward_calls = 0;

[[noreturn]] void throw_holds_average(const char* call);
[[noreturn]] void throw_holds_average(const char* call, std::size_t index);  // of the parameter in a list
// Throws if the value is a moving average, because the next swap() would undo a change of the value.
inline void require_not_averaged(const char* call, std::uint8_t grad_flags) {
    if (grad_flags & grad_flag::holds_average & ~ignored_flags) [[unlikely]]
        throw_holds_average(call);
}
// Call this before a backward pass writes to a gradient. Throws if the gradient is locked against the pass.
template <class T> void require_backward_allowed_and_mark_dirty(const T& value, std::uint8_t& grad_flags) {
    if (is_backward_locked(grad_flags)) throw_locked("backward", describe(value));
    grad_flags |= grad_flag::dirty_for_window;
}
// Call this before returning a reference to a gradient. The caller may later read the gradient through the
// reference, so a Window stops deferring additions to the gradient.
inline void mark_escaped(std::uint8_t& grad_flags) {
    if (!(ignored_flags & grad_flag::locked) && !(load_flags(grad_flags) & grad_flag::escaped))
        __atomic_fetch_or(&grad_flags, grad_flag::escaped, __ATOMIC_RELAXED);
}

// GradientRef refers to the gradient of a value. The GradientRef of an input that needs no gradient is empty.
template <class T> struct GradientRef {
    T* gradient = nullptr;
    const T* value = nullptr;  // the value whose gradient this is
    std::uint8_t* grad_flags = nullptr;

    explicit operator bool() const { return gradient != nullptr; }
    [[gnu::always_inline]] bool is_present() const { return is_present(*grad_flags); }
    [[gnu::always_inline]] bool is_present(std::uint8_t loaded_flags) const {
        return (loaded_flags & grad_flag::present) && has_memory(*gradient);
    }
};
}  // namespace detail

}  // namespace tally
