// Error is the exception that the library throws. The message names the call, its arguments and a remedy.
#pragma once

#include <concepts>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tally/base/text.hpp"

namespace tally {

namespace detail {
// Stores one part of an error message: text, a number, or an object for which to_string() exists.
class MessagePart {
public:
    MessagePart(std::string_view text) : text_(text) {}
    MessagePart(const std::string& text) : text_(text) {}
    MessagePart(const char* text) : text_(text) {}
    template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>) MessagePart(T number)
        : text_(std::to_string(number)) {}
    MessagePart(std::floating_point auto number) : text_(shortest(number)) {}
    template <class T>
    requires requires(const T& object) { to_string(object); }
    MessagePart(const T& object) : text_(to_string(object)) {}

    std::string_view text() const { return text_; }

private:
    std::string text_;
};

// Joins "[call] " and the parts of the message without separators.
std::string error_message(std::string_view call, std::initializer_list<MessagePart> parts);
}  // namespace detail

// The library throws Error for every rejected call. what() begins with the call's name, as in [matmul].
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;

    // Error("slice", "the end ", 7, " is beyond the ", 6, " rows; pass at most ", 6)
    template <class... Parts>
    requires(sizeof...(Parts) > 0)
        [[gnu::cold, gnu::noinline]] explicit Error(std::string_view call, const Parts&... parts)
        : std::runtime_error(detail::error_message(call, {detail::MessagePart(parts)...})) {}
};

namespace detail {
// Throws an Error with the name of the call and the parts of the message if `condition` is false.
template <class... Parts> void require(bool condition, std::string_view call, const Parts&... parts) {
    if (!condition) [[unlikely]]
        throw Error(call, parts...);
}
}  // namespace detail

}  // namespace tally
