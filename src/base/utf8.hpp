// Validates, decodes and encodes UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tally {

// Returns the number of bytes of the first character. Returns 0 for an invalid character: a stray byte, an
// overlong encoding, half of a surrogate pair, or a code point above U+10FFFF.
constexpr std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const unsigned first = byte(0);
    if (text.empty() || (first >= 0x80 && first < 0xC2) || first > 0xF4) return 0;
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    const bool too_long = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
    const bool half_a_pair = first == 0xED && byte(1) > 0x9F, beyond = first == 0xF4 && byte(1) > 0x8F;
    return too_long || half_a_pair || beyond ? 0 : length;
}

constexpr bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

// Returns the code point of a character, which must be valid.
constexpr std::uint32_t utf8_code(std::string_view character) {
    std::uint32_t code = static_cast<unsigned char>(character[0]);
    if (character.size() > 1) code &= 0xFFu >> (character.size() + 1);
    for (const char byte : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
    return code;
}

inline void append_utf8(std::string& text, std::uint32_t character) {
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (character < 0x80) return put(character);
    if (character < 0x800) {
        put(0xC0 | character >> 6);
    } else {
        if (character < 0x10000) {
            put(0xE0 | character >> 12);
        } else {
            put(0xF0 | character >> 18);
            put(0x80 | (character >> 12 & 63));
        }
        put(0x80 | (character >> 6 & 63));
    }
    put(0x80 | (character & 63));
}

}  // namespace tally
