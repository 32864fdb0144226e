// Measures, wraps and pads text for a terminal, and converts it to ASCII.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tally::lesson {

std::size_t width_of(std::string_view text);  // columns on screen: one for each code point of UTF-8
std::string padded(std::string_view text, std::size_t width);
std::string padded_left(std::string_view text, std::size_t width);
std::string repeated(std::string_view piece, std::size_t times);
std::string joined(const std::vector<std::string>& pieces, std::string_view between);

// Wraps the text to `width` columns, indents continued lines and cuts words that are longer than a line.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);
// Wraps a list of pieces without breaking a piece at blanks, and separates pieces in a line by `between`.
std::vector<std::string> wrapped(const std::vector<std::string>& pieces, std::string_view between,
                                 std::size_t width, std::size_t indent = 0);

std::string to_ascii(std::string_view text);  // other characters become "?"

}  // namespace tally::lesson
