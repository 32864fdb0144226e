// Declares functions that clean and shorten text, and functions that format numbers.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>

namespace tally {

namespace detail {
std::string with_decimals(double number, int decimals);  // like printf("%.*f")
// Returns valid UTF-8 without control characters, and replaces the middle of long text by "..".
std::string clean_text(const std::string& text, int longest);
int text_columns(const std::string& utf8);  // the width in a terminal or a monospace font

// The functions below print a decimal point in every locale. shortest() and to_text(number) print the fewest
// digits from which a program reads the same number.
std::string shortest(double number);
std::string to_text(std::floating_point auto number) { return detail::shortest(number); }
std::string to_text(double number, int digits);  // like printf("%.*g")
std::string short_number(double number);         // "0.5000", "1.250e-07", "nan"
// Returns "[-0.3536  0.0207 -0.6125]", or "[ 0.5000 -1.2500 ..]" for more than four values.
std::string short_values(std::span<const double> values);
std::string format_bytes(std::size_t bytes);  // "960 B", "45.0 MiB"
}  // namespace detail

}  // namespace tally
