// Fills values into sentences: say("{} of {}", "means", 3) returns "means of 3".
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "course/kit/numbers.hpp"

namespace tally::lesson {

struct Filling {
    std::string text;
    Filling(const char* words) : text(words) {}
    Filling(std::string words) : text(std::move(words)) {}
    Filling(double number);
    template <std::integral T> Filling(T number) : text(std::to_string(number)) {}
    Filling(const Numbers& numbers);  // "[-1.0608 0.0620 -1.8375]", with the digits of the lesson
    template <class T>
    requires(!std::is_arithmetic_v<T> && !std::convertible_to<const T&, std::string> &&
             std::constructible_from<Numbers, const T&>) Filling(const T& value)
        : Filling(Numbers(value)) {}
};

// Replaces each {} by a filling. Throws std::logic_error unless each {} has exactly one filling.
std::string filled(std::string_view pattern, const std::vector<Filling>& fillings);
template <class... T> std::string say(std::string_view pattern, const T&... fillings) {
    return filled(pattern, {Filling(fillings)...});
}

std::string list_of(const std::vector<std::string>& words, std::string_view last);  // "1, 2 or 3"

}  // namespace tally::lesson
