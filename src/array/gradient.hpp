// What is noted of a gradient beside its numbers: whether one has arrived, and who may change it.
#pragma once

#include <cstdint>
#include <string>

#include "tally/array/value.hpp"
#include "tally/base/scoped_value.hpp"

namespace tally {

namespace grad_flag {
inline constexpr std::uint8_t present = 1;       // a gradient
inline constexpr std::uint8_t first_write = 16;  // for its place by a rule that sets it; of a leaf, the last
// Of a leaf whose gradient a window gathers, what others may not do.
inline constexpr std::uint8_t locked = 2;               // change it, clear it or step
inline constexpr std::uint8_t backward_locked = 4;      // go backward into it
inline constexpr std::uint8_t written_since_check = 8;  // a backward pass reached it
inline constexpr std::uint8_t has_deferred_rows = 32;   // rows wait to be added to it (pending_rows.hpp)
inline constexpr std::uint8_t escaped = 64;             // somebody may keep a reference to it, so none wait
inline constexpr std::uint8_t holds_average = 128;  // the value is a moving average's: no optimizer steps it
}  // namespace grad_flag

namespace detail {
// Of grad_flag::locked and backward_locked: what does not hold now, inside UnlockScope.
inline constinit thread_local std::uint8_t unlocked_flags = 0;

// While one lives, what a window holds can be changed, by the window itself: grad_flag::locked, backward_locked.
struct UnlockScope : private ScopedValue<std::uint8_t> {
    explicit UnlockScope(std::uint8_t what)
        : ScopedValue(unlocked_flags, static_cast<std::uint8_t>(unlocked_flags | what)) {}
};

// What is noted now. Threads may look at one gradient at the same time; pending and shown then change under their eyes.
[[gnu::always_inline]] inline std::uint8_t load_flags(const std::uint8_t& grad_flags) {
    return __atomic_load_n(&grad_flags, __ATOMIC_ACQUIRE);
}

inline bool is_locked(std::uint8_t grad_flags) { return grad_flags & grad_flag::locked & ~unlocked_flags; }
inline bool is_backward_locked(std::uint8_t grad_flags) {
    return grad_flags & grad_flag::backward_locked & ~unlocked_flags;
}
[[noreturn]] void throw_locked(const char* what, const std::string& parameter);
[[noreturn]] void throw_holds_average(const char* what, std::size_t parameter);

inline constinit thread_local std::uint64_t backward_calls = 0;  // of this thread so far

// Asked before a value is changed: a moving average would take the change away.
[[noreturn]] void throw_average_not_writable(const char* what);
inline void require_own_value(const char* what, std::uint8_t grad_flags) {
    if (grad_flags & grad_flag::holds_average & ~unlocked_flags) [[unlikely]]
        throw_average_not_writable(what);
}
// A sweep comes to the gradient of a value that a window may hold.
template <class T> void before_backward_write(const T& value, std::uint8_t& grad_flags) {
    if (is_backward_locked(grad_flags)) throw_locked("backward", describe(value));
    grad_flags |= grad_flag::written_since_check;
}
// Somebody other than the window gets a reference to a gradient, and may keep it: it shows all that arrives from now on.
inline void mark_escaped(std::uint8_t& grad_flags) {
    if (!(unlocked_flags & grad_flag::locked) && !(load_flags(grad_flags) & grad_flag::escaped))
        __atomic_fetch_or(&grad_flags, grad_flag::escaped, __ATOMIC_RELAXED);
}

// A gradient as those see it who look at it from outside of the graph; empty where none is wanted.
template <class T> struct GradientView {
    T* gradient = nullptr;
    const T* value = nullptr;  // what it is the gradient of
    std::uint8_t* grad_flags = nullptr;

    explicit operator bool() const { return gradient != nullptr; }
    [[gnu::always_inline]] bool is_present() const { return is_present(*grad_flags); }
    [[gnu::always_inline]] bool is_present(std::uint8_t load_flags) const {
        return (load_flags & grad_flag::present) && has_memory(*gradient);
    }
};
}  // namespace detail

}  // namespace tally
