// Adds parts of C++20 that tally uses but libc++ 13 lacks. The emscripten of Debian 12 has libc++ 13.
#pragma once

#include <version>

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 14000
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iterator>
#include <ranges>

namespace std {

template <class To, class From> constexpr To bit_cast(const From& from) noexcept {
    return __builtin_bit_cast(To, from);
}

inline to_chars_result to_chars_put(char* first, char* last, const char* text, int size) {
    if (size > last - first) return {last, errc::value_too_large};
    memcpy(first, text, static_cast<size_t>(size));
    return {first + size, errc{}};
}

// Writes the fewest digits from which sscanf() reads the same number.
inline to_chars_result to_chars(char* first, char* last, double value) {
    char text[64];
    int size = 0;
    for (int digits = 1; digits <= 17; ++digits) {
        size = snprintf(text, sizeof text, "%.*g", digits, value);
        double back = 0;
        sscanf(text, "%lf", &back);
        if (back == value) break;
    }
    return to_chars_put(first, last, text, size);
}

inline to_chars_result to_chars(char* first, char* last, double value, chars_format format, int digits) {
    char text[400];
    const char* const as = format == chars_format::fixed        ? "%.*f"
                           : format == chars_format::scientific ? "%.*e"
                                                                : "%.*g";
    return to_chars_put(first, last, text, snprintf(text, sizeof text, as, digits, value));
}

inline to_chars_result to_chars(char* first, char* last, double value, chars_format format) {
    return format == chars_format::general ? to_chars(first, last, value)
                                           : to_chars(first, last, value, format, 6);
}

namespace ranges {

template <class R, class T, class P = std::identity> auto find(R&& r, const T& value, P p = {}) {
    return std::find_if(std::begin(r), std::end(r),
                        [&](const auto& a) { return std::invoke(p, a) == value; });
}
template <class R, class F> auto find_if(R&& r, F f) { return std::find_if(std::begin(r), std::end(r), f); }
template <class R, class T, class P = std::identity> auto count(R&& r, const T& value, P p = {}) {
    return std::count_if(std::begin(r), std::end(r),
                         [&](const auto& a) { return std::invoke(p, a) == value; });
}
template <class R, class C = std::less<>, class P = std::identity>
void stable_sort(R&& r, C c = {}, P p = {}) {
    std::stable_sort(std::begin(r), std::end(r), [&](const auto& a, const auto& b) {
        return std::invoke(c, std::invoke(p, a), std::invoke(p, b));
    });
}
template <class R, class C = std::less<>, class P = std::identity> void sort(R&& r, C c = {}, P p = {}) {
    std::sort(std::begin(r), std::end(r), [&](const auto& a, const auto& b) {
        return std::invoke(c, std::invoke(p, a), std::invoke(p, b));
    });
}
template <class R, class F> bool any_of(R&& r, F f) { return std::any_of(std::begin(r), std::end(r), f); }
template <class R, class F> bool all_of(R&& r, F f) { return std::all_of(std::begin(r), std::end(r), f); }

}  // namespace ranges
}  // namespace std
#endif
