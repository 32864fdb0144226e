// Text on a terminal: how wide it is, how it wraps, and how it is said in pure ASCII.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tally::lesson {

std::size_t width_of(std::string_view text);  // in columns: one for each code point of UTF-8
std::string padded(std::string_view text, std::size_t width);
std::string padded_left(std::string_view text, std::size_t width);
std::string repeated(std::string_view piece, std::size_t times);
std::string joined(const std::vector<std::string>& pieces, std::string_view between);

// Lines of at most `width` columns, broken at blanks; a word longer than a line is cut. Continued
// lines are indented.
std::vector<std::string> wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);
// The same for pieces that should stay whole, joined by `between` where they share a line.
std::vector<std::string> wrapped(const std::vector<std::string>& pieces, std::string_view between,
                                 std::size_t width, std::size_t indent = 0);

std::string to_ascii(std::string_view text);  // what is none becomes "?"
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace tally::lesson
