// Builds sentences with numbers and plurals.
#include "course/kit/wording.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <stdexcept>

#include "course/kit/lesson.hpp"

namespace tally::lesson {

Filling::Filling(double number) : text(fmt::format("{:g}", number)) {}

Filling::Filling(const Numbers& numbers) : text(row_text(numbers, options().digits)) {
    text.erase(0, text.find_first_not_of(' '));
    for (std::size_t at; (at = text.find("  ")) != std::string::npos;) text.erase(at, 1);
    if (!numbers.shape.empty()) text = "[" + text + "]";
}

std::string filled(std::string_view pattern, const std::vector<Filling>& fillings) {
    std::string text;
    std::size_t from = 0;
    for (const auto& filling : fillings) {
        const std::size_t gap = pattern.find("{}", from);
        if (gap == std::string_view::npos) break;
        text.append(pattern.substr(from, gap - from)).append(filling.text);
        from = gap + 2;
    }
    text.append(pattern.substr(from));
    std::size_t gaps = 0;
    for (std::size_t gap = 0; (gap = pattern.find("{}", gap)) != std::string_view::npos; gap += 2) ++gaps;
    if (gaps != fillings.size())
        throw std::logic_error(fmt::format("[say] '{}' has {} gaps {{}}, but there are {} values", pattern,
                                           gaps, fillings.size()));
    return text;
}

std::string to_text(std::int64_t n) {
    static constexpr std::array words{"no",    "one",   "two",  "three", "four",   "five",  "six",
                                      "seven", "eight", "nine", "ten",   "eleven", "twelve"};
    return n >= 0 && n < std::int64_t(words.size()) ? words[std::size_t(n)] : std::to_string(n);
}

std::string capital(std::string text) {
    if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
}

namespace {
std::string of_one(const std::string& things) {
    if (things.ends_with("ries")) return things.substr(0, things.size() - 3) + "y";
    return things.substr(0, things.size() - (things.ends_with("ches") ? 2 : 1));
}
}  // namespace

std::string many(std::int64_t n, const std::string& things) {
    return std::to_string(n) + " " + (n == 1 ? of_one(things) : things);
}

std::string many_in_words(std::int64_t n, const std::string& things) {
    return to_text(n) + " " + (n == 1 ? of_one(things) : things);
}

std::string times(std::int64_t n) { return n == 1 ? "once" : n == 2 ? "twice" : to_text(n) + " times"; }

std::string one_in(std::int64_t k) { return k == 1 ? "all" : "1/" + std::to_string(k); }

std::string times_of(double factor) { return factor == 1 ? "just" : Filling(factor).text + " times"; }

std::string list_of(const std::vector<std::string>& words, std::string_view last) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i)
        text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " " + std::string(last) + " ") + words[i];
    return text;
}

std::string sum_of(const std::vector<std::int64_t>& sizes) {
    std::string text;
    for (const std::int64_t size : sizes) text += (text.empty() ? "" : " + ") + std::to_string(size);
    return text;
}

}  // namespace tally::lesson
