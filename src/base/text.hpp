// Text for people: cleaned, measured and shortened; numbers and bytes in words.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>

namespace tally {

namespace detail {
std::string clean_text(const std::string& text,
                       int longest);  // UTF-8 without control characters, shortened in the middle
std::string shortest(double number);
int text_columns(const std::string& utf8);  // of a terminal, or of a monospace font

// These print a decimal point in every locale. "0.1": the fewest digits that read back as the same number.
std::string in_words(std::floating_point auto number) { return detail::shortest(number); }
std::string in_words(double number, int digits);  // printf's "%.*g"
}  // namespace detail
std::string with_decimals(double number, int decimals);  // and "%.*f"
std::string short_number(double number);                 // "0.5000", "1.250e-07", "nan"
std::string bytes_in_words(std::size_t bytes);           // "960 B", "45.0 MiB"

}  // namespace tally
