// Reduces the random cases of a test where each case takes ten times as long.
#pragma once

#include <cstdlib>

template <class T> constexpr T tenth_of(T number) { return (number + 9) / 10; }

// In builds with assertions: debug, coverage and sanitizers.
template <class T> constexpr T cases_of(T number) {
#ifdef NDEBUG
    return number;
#else
    return tenth_of(number);
#endif
}

// With TALLY_FEWER_CASES in the environment: for the kernels that tests/ptx executes.
template <class T> T launches_of(T number) {
    static const bool fewer = std::getenv("TALLY_FEWER_CASES") != nullptr;
    return fewer ? tenth_of(number) : number;
}
