// Formats the sizes of a kernel's arguments for error messages.
#pragma once

#include <cstddef>
#include <string>

#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

template <class Sizes> std::string in_brackets(const Sizes& sizes, std::size_t count) {
    std::string text = "(";
    for (std::size_t i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(sizes[i]);
    return text + ")";
}

inline std::string words(const Product& p) {
    return "(" + std::to_string(p.m) + ", " + std::to_string(p.k) + ") x (" + std::to_string(p.k) + ", " +
           std::to_string(p.n) + ")";
}

// Returns the dimensions of a kernel body as text, or the number of launched elements or teams.
template <class Body> std::string sizes_of(const Body& body, std::size_t count, const char* of) {
    if constexpr (requires { body.dims.reduced; }) {
        return in_brackets(std::array{body.dims.outer, body.dims.reduced, body.dims.inner}, 3);
    } else if constexpr (requires { body.dims.features; }) {
        return in_brackets(std::array{body.dims.items, body.dims.features, body.dims.space}, 3);
    } else if constexpr (requires { body.p.transpose_a; }) {
        return words(body.p);
    } else if constexpr (requires { body.walk.extent; }) {
        return in_brackets(body.walk.extent, static_cast<std::size_t>(body.walk.rank));
    } else if constexpr (requires { body.walk.moves; }) {
        return in_brackets(body.walk.moves.extent, static_cast<std::size_t>(body.walk.moves.rank)) +
               ", summed over " +
               in_brackets(body.walk.repeats.extent, static_cast<std::size_t>(body.walk.repeats.rank));
    } else {
        return std::to_string(count) + " " + of;
    }
}

}  // namespace tally::gpu
