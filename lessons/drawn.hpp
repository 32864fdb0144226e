// Random arrays, and the messages of errors, for the lessons on memory.
#pragma once

#include "course/kit/toy.hpp"
#include "tally/train.hpp"

namespace {
// Returns random numbers between -most and most.
inline Array<real> drawn(const Shape& shape, std::uint64_t stream, double most) {
    return uniform<real>(shape, -most, most, {.seed = options().seed, .stream = stream})
        .value()
        .to(options().device);
}

// Returns the message of the error that f throws, up to the text `until`.
template <class F> std::string error_of(const F& f, const std::string& until = ";") {
    try {
        f();
    } catch (const Error& error) {
        const std::string text = error.what();
        return text.substr(0, text.find(until));
    }
    return "no error";
}
}  // namespace
