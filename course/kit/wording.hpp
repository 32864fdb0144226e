// Sentences that follow their numbers: "three micro-batches of 2 rows", "one micro-batch of 6 rows".
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tally::lesson {

// What stands in a sentence: words, or a number in its shortest digits.
struct Filling {
    std::string text;
    Filling(const char* words) : text(words) {}
    Filling(std::string words) : text(std::move(words)) {}
    Filling(double number);
    template <std::integral T> Filling(T number) : text(std::to_string(number)) {}
};

// Each {} of the pattern in turn is one of these.
std::string filled(std::string_view pattern, const std::vector<Filling>& fillings);
template <class... T> std::string say(std::string_view pattern, const T&... fillings) {
    return filled(pattern, {Filling(fillings)...});
}

std::string in_words(std::int64_t n);    // "three"; from thirteen on its digits
std::string capital(std::string words);  // "Three"
// The things are given as several: of one the s goes, or the es of "micro-batches"; "tries" are a "try".
std::string many(std::int64_t n, const std::string& things);           // "2 rows", "1 row"
std::string many_in_words(std::int64_t n, const std::string& things);  // "two rows", "one row"
std::string times(std::int64_t n);                                     // "once", "twice", "three times"
std::string one_in(std::int64_t k);                                    // "1/3"; of 1 "all"
std::string times_of(double factor);                                   // "0.1 times"; of 1 "just"
std::string list_of(const std::vector<std::string>& words, std::string_view last);  // "1, 2 or 3"

std::string sum_of(const std::vector<std::int64_t>& sizes);  // "4 + 2"

}  // namespace tally::lesson
