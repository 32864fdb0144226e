// Cleans and shortens text for terminals, and formats numbers.
#include "tally/base/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "tally/base/utf8.hpp"

namespace tally {

namespace detail {
namespace {

struct Letter {
    std::string bytes;
    std::uint32_t code;
};

// Returns the characters of a text. Invalid bytes become U+FFFD, and control characters become blanks.
std::vector<Letter> letters_of(std::string_view text) {
    std::vector<Letter> letters;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const std::uint32_t code = length == 0 ? 0 : utf8_code(text.substr(0, length));
        const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0),
                   noncharacter = (code & 0xFFFE) == 0xFFFE;
        if (length == 0 || noncharacter)
            letters.push_back({"\xEF\xBF\xBD", 0xFFFD});
        else if (control)
            letters.push_back({" ", ' '});
        else
            letters.push_back({std::string(text.substr(0, length)), code});
        text.remove_prefix(length == 0 || noncharacter ? 1 : length);
    }
    return letters;
}

}  // namespace

int text_columns(const std::string& utf8) {
    int wide = 0;
    for (const Letter& letter : letters_of(utf8))
        wide += (letter.code >= 0x1100 && letter.code < 0x1160) || letter.code >= 0x2E80 ? 2 : 1;
    return wide;
}

std::string clean_text(const std::string& text, int longest) {
    const std::vector<Letter> letters = letters_of(text);
    const auto total = std::ssize(letters);
    std::string result;
    for (std::ptrdiff_t i = 0; i < total; ++i) {
        const bool long_text = total > longest;
        if (long_text && i == longest / 2) {
            result += "..";
            i = total - (longest - longest / 2 - 2);
        }
        result += letters[static_cast<std::size_t>(i)].bytes;
    }
    return result;
}
}  // namespace detail

namespace {

template <class... How> std::string number_text(double number, How... how) {
    std::array<char, 512> text{};  // enough for all digits of the largest double
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number, how...).ptr};
}

}  // namespace

std::string detail::shortest(double number) { return number_text(number); }
std::string detail::to_text(double number, int digits) {
    return number_text(number, std::chars_format::general, digits);
}
std::string detail::with_decimals(double number, int decimals) {
    return number_text(number, std::chars_format::fixed, decimals);
}

std::string detail::short_number(double number) {
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    const double size = std::abs(number);
    const bool plain = number == 0 || (size >= 1e-4 && size < 1e5);
    return plain ? detail::with_decimals(number, 4) : number_text(number, std::chars_format::scientific, 3);
}

std::string detail::short_values(std::span<const double> values) {
    const std::size_t shown = values.size() > 4 ? 2 : values.size();
    std::string text;
    for (const double value : values.first(shown)) {
        const std::string number = short_number(value);
        text += std::string(number.size() < 7 ? 8 - number.size() : 1, ' ') + number;
    }
    if (text.empty()) return "[]";
    text.front() = '[';
    return text + (shown < values.size() ? " ..]" : "]");
}

std::string detail::format_bytes(std::size_t bytes) {
    if (bytes < 1024) return std::to_string(bytes) + " B";
    constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double number = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    while (number >= 1023.95 && unit + 1 < std::size(units)) {
        number /= 1024;
        ++unit;
    }
    return detail::with_decimals(number, 1) + " " + units[unit];
}

}  // namespace tally
