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
    std::size_t from = 0, gaps = 0;
    for (std::size_t gap; (gap = pattern.find("{}", from)) != std::string_view::npos; from = gap + 2) {
        text.append(pattern.substr(from, gap - from));
        if (gaps < fillings.size()) text += fillings[gaps].text;
        ++gaps;
    }
    text.append(pattern.substr(from));
    if (gaps != fillings.size())
        throw std::logic_error(fmt::format("[say] '{}' has {} gaps {{}}, but there are {} values", pattern,
                                           gaps, fillings.size()));
    return text;
}

std::string list_of(const std::vector<std::string>& words, std::string_view last) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i)
        text += (i == 0 ? "" : i + 1 < words.size() ? ", " : " " + std::string(last) + " ") + words[i];
    return text;
}

}  // namespace tally::lesson
