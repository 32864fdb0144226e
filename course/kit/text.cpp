// Measures, wraps and pads text.
#include "course/kit/text.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace tally::lesson {

namespace {
bool continues_code_point(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::size_t bytes_for(std::string_view text, std::size_t columns) {
    std::size_t at = 0;
    while (at < text.size() && columns > 0) {
        ++at;
        while (at < text.size() && continues_code_point(text[at])) ++at;
        --columns;
    }
    return at;
}
}  // namespace

std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char byte) { return !continues_code_point(byte); }));
}

std::string repeated(std::string_view piece, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += piece;
    return text;
}

std::string padded(std::string_view text, std::size_t width) {
    const std::size_t used = width_of(text);
    return std::string(text) + std::string(width > used ? width - used : 0, ' ');
}

std::string padded_left(std::string_view text, std::size_t width) {
    const std::size_t used = width_of(text);
    return std::string(width > used ? width - used : 0, ' ') + std::string(text);
}

std::string joined(const std::vector<std::string>& pieces, std::string_view between) {
    return fmt::format("{}", fmt::join(pieces, between));
}

std::vector<std::string> wrapped(const std::vector<std::string>& pieces, std::string_view between,
                                 std::size_t width, std::size_t indent) {
    width = std::max<std::size_t>(width, 4);
    indent = std::min(indent, width / 2);
    std::vector<std::string> lines;
    std::string line;
    bool fresh = true;  // the line holds only indentation
    const auto end_line = [&] {
        lines.push_back(std::move(line));
        line.assign(indent, ' ');
        fresh = true;
    };
    for (std::string_view piece : pieces) {
        if (!fresh && width_of(line) + width_of(between) + width_of(piece) > width) end_line();
        if (!fresh) line += between;
        // Removes blanks at the beginning of the piece, because a continued line has its own indentation.
        if (fresh && !lines.empty())
            piece.remove_prefix(std::min(piece.find_first_not_of(' '), piece.size()));
        while (width_of(line) + width_of(piece) > width) {
            const std::size_t fitting = bytes_for(piece, width - width_of(line));
            line += piece.substr(0, fitting);
            piece.remove_prefix(fitting);
            end_line();
        }
        line += piece;
        fresh = false;
    }
    if (!fresh || lines.empty()) lines.push_back(std::move(line));
    return lines;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t indent) {
    if (width_of(text) <= width) return {std::string(text)};
    std::vector<std::string> words;  // each word begins with its blanks, without the one that separates words
    while (!text.empty()) {
        const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
        const std::size_t end = std::min(text.find(' ', start), text.size());
        if (start < end) words.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return wrapped(words, " ", width, indent);
}

std::string to_ascii(std::string_view text) {
    std::string ascii;
    for (const char byte : text)
        if (!continues_code_point(byte)) ascii += static_cast<unsigned char>(byte) < 0x80U ? byte : '?';
    return ascii;
}

}  // namespace tally::lesson
