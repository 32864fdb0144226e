// Fills values into sentences.
#include "course/kit/wording.hpp"

#include <fmt/format.h>

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

namespace {
std::string of_one(const std::string& things) {
    if (things.ends_with("ries")) return things.substr(0, things.size() - 3) + "y";
    return things.substr(0, things.size() - (things.ends_with("ches") ? 2 : 1));
}
}  // namespace

std::string many(std::int64_t n, const std::string& things) {
    return std::to_string(n) + " " + (n == 1 ? of_one(things) : things);
}

std::string list_of(const std::vector<std::string>& words, std::string_view last) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i)
        text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " " + std::string(last) + " ") + words[i];
    return text;
}

}  // namespace tally::lesson
