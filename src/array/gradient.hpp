// What is noted of a gradient beside its numbers: whether one has arrived, and who may change it.
#pragma once

#include <cstdint>
#include <string>

#include "tally/array/value.hpp"
#include "tally/base/meanwhile.hpp"

namespace tally {

namespace touch {
inline constexpr std::uint8_t arrived = 1;  // a gradient
inline constexpr std::uint8_t asked = 16;   // for its place by a rule that sets it; of a leaf, the last
// Of a leaf whose gradient a window gathers, what others may not do.
inline constexpr std::uint8_t held = 2;      // change it, clear it or step
inline constexpr std::uint8_t sealed = 4;    // go backward into it
inline constexpr std::uint8_t met = 8;       // a backward pass reached it
inline constexpr std::uint8_t pending = 32;  // rows wait to be added to it (pending_rows.hpp)
inline constexpr std::uint8_t shown = 64;    // somebody may keep a reference to it, so none wait
inline constexpr std::uint8_t lent = 128;    // the value is a moving average's: no optimizer steps it
}  // namespace touch

namespace detail {

// Of touch::held and sealed: what does not hold now, inside Lift.
inline constinit thread_local std::uint8_t lifted = 0;

// While one lives, what a window holds can be changed, by the window itself: touch::held, sealed.
struct Lift : private Meanwhile<std::uint8_t> {
    explicit Lift(std::uint8_t what) : Meanwhile(lifted, static_cast<std::uint8_t>(lifted | what)) {}
};

// What is noted now. Threads may look at one gradient at the same time; pending and shown then change under their eyes.
[[gnu::always_inline]] inline std::uint8_t noted(const std::uint8_t& touched) {
    return __atomic_load_n(&touched, __ATOMIC_ACQUIRE);
}

inline bool is_held(std::uint8_t touched) { return touched & touch::held & ~lifted; }
inline bool is_sealed(std::uint8_t touched) { return touched & touch::sealed & ~lifted; }
[[noreturn]] void refuse_held(const char* what, const std::string& parameter);
[[noreturn]] void refuse_lent(const char* what, std::size_t parameter);

inline constinit thread_local std::uint64_t backward_calls = 0;  // of this thread so far

// Asked before a value is changed: a moving average would take the change away.
[[noreturn]] void refuse_written_average(const char* what);
inline void expect_own_value(const char* what, std::uint8_t touched) {
    if (touched & touch::lent & ~lifted) [[unlikely]]
        refuse_written_average(what);
}
// A sweep comes to the gradient of a value that a window may hold.
template <class T> void meet(const T& value, std::uint8_t& touched) {
    if (is_sealed(touched)) refuse_held("backward", form(value));
    touched |= touch::met;
}
// Somebody other than the window gets a reference to a gradient, and may keep it: it shows all that arrives from now on.
inline void show(std::uint8_t& touched) {
    if (!(lifted & touch::held) && !(noted(touched) & touch::shown))
        __atomic_fetch_or(&touched, touch::shown, __ATOMIC_RELAXED);
}

// A gradient as those see it who look at it from outside of the graph; empty where none is wanted.
template <class T> struct GradientView {
    T* gradient = nullptr;
    const T* value = nullptr;  // what it is the gradient of
    std::uint8_t* touched = nullptr;

    explicit operator bool() const { return gradient != nullptr; }
    [[gnu::always_inline]] bool has_arrived() const { return has_arrived(*touched); }
    [[gnu::always_inline]] bool has_arrived(std::uint8_t noted) const {
        return (noted & touch::arrived) && ready(*gradient);
    }
};

}  // namespace detail

}  // namespace tally
