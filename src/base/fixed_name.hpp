// A `FixedName` is a string literal as a template argument, so that names of operations cost no run time.
#pragma once

#include <cstddef>

namespace tally::detail {

template <std::size_t N> struct FixedName {
    char text[N]{};
    constexpr FixedName(const char (&literal)[N]) {
        for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
    }
    constexpr operator const char*() const { return text; }
};

}  // namespace tally::detail
