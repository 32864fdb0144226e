// JsonReader parses the JSON of safetensors headers (objects, strings, lists of integers) without recursion.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tally/base/utf8.hpp"
#include "tally/io/file_bytes.hpp"

namespace tally {

class JsonReader {
public:
    // `start` is the position of `text` in the file.
    JsonReader(const ByteReader& file, std::string_view text, std::uint64_t start)
        : file_(file), text_(text), start_(start) {}

    std::uint64_t at() {
        skip_blanks();
        return start_ + at_;
    }

    bool accept(char wanted) {
        skip_blanks();
        if (at_ == text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    void require_next(char wanted) {
        if (!accept(wanted)) throw_here("'", std::string(1, wanted), "' expected");
    }
    void end() {
        skip_blanks();
        if (at_ != text_.size()) throw_here("nothing but blanks may follow the header");
    }

    // Parses {"key": value, ...}. For each key, member(key, position of the key) must read the value.
    template <class Member> void object(Member member) {
        require_next('{');
        if (accept('}')) return;
        do {
            const std::uint64_t key_at = at();
            const std::string key = string();
            require_next(':');
            member(key, key_at);
        } while (accept(','));
        require_next('}');
    }

    std::vector<std::int64_t> numbers() {
        std::vector<std::int64_t> all;
        require_next('[');
        if (accept(']')) return all;
        do all.push_back(number());
        while (accept(','));
        require_next(']');
        return all;
    }

    std::string string() {
        require_next('"');
        std::string text;
        while (at_ < text_.size() && text_[at_] != '"') {
            if (text_[at_] == '\\') {
                escape(text);
                continue;
            }
            const std::size_t length = utf8_length(text_.substr(at_));
            if (length == 0) throw_here("not UTF-8");
            if (static_cast<unsigned char>(text_[at_]) < 0x20) throw_here("a control character in a string");
            text += text_.substr(at_, length);
            at_ += length;
        }
        if (at_ == text_.size()) throw_here("a string that does not end");
        ++at_;
        return text;
    }

private:
    template <class... Parts> [[noreturn]] void throw_here(const Parts&... parts) const {
        file_.throw_at(start_ + at_, parts...);
    }

    void skip_blanks() {
        while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
            ++at_;
    }

    std::int64_t number() {
        skip_blanks();
        const std::size_t first = at_;
        std::int64_t value = 0;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            const std::int64_t digit = text_[at_] - '0';
            if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10)
                throw_here("the number is too large");
            value = value * 10 + digit;
        }
        if (at_ == first) throw_here("a whole number expected");
        if (text_[first] == '0' && at_ - first > 1) throw_here("a number that begins with 0");
        return value;
    }

    void escape(std::string& text) {
        constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
        const char letter = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
        if (letter == 'u') return append_utf8(text, escaped_character());
        const std::size_t which = letters.find(letter);
        if (which == std::string_view::npos) throw_here("not an escape sequence of JSON");
        text += meanings[which];
        at_ += 2;
    }
    std::uint32_t escaped_character() {  // characters beyond U+FFFF need two escapes, like \uD83D\uDE00
        const std::size_t first_at = at_;
        const std::uint32_t first = four_digits();
        if (first < 0xD800 || first > 0xDFFF) return first;
        const std::uint32_t second = first < 0xDC00 ? four_digits() : 0;
        if (second < 0xDC00 || second > 0xDFFF)
            file_.throw_at(start_ + first_at, "one half of a surrogate pair");
        return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    }
    std::uint32_t four_digits() {
        if (text_.substr(at_, 2) != "\\u") throw_here("the second half of a surrogate pair expected");
        std::uint32_t value = 0;
        for (std::size_t i = at_ + 2; i < at_ + 6; ++i) {
            const char c = i < text_.size() ? text_[i] : '\0';
            const char lower = static_cast<char>(c | 0x20);
            if (c >= '0' && c <= '9')
                value = value * 16 + static_cast<std::uint32_t>(c - '0');
            else if (lower >= 'a' && lower <= 'f')
                value = value * 16 + static_cast<std::uint32_t>(lower - 'a' + 10);
            else
                throw_here("four hexadecimal digits expected");
        }
        at_ += 6;
        return value;
    }

    const ByteReader& file_;
    std::string_view text_;
    std::uint64_t start_;
    std::size_t at_ = 0;
};

}  // namespace tally
