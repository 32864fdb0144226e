// Prints numbers as "%7.4f", or in scientific notation if the numbers are too small or too large.
#include "course/kit/numbers.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <stdexcept>

namespace tally::lesson {

namespace {
// Pads all numbers to the same width, which is at least the width of "%7.4f". The notation is scientific if the
// largest number is below 0.001 or at least 10^6. fmt would print the sign of NaN, which has no meaning.
std::vector<std::string> printed(const Numbers& numbers, int digits) {
    double largest = 0;
    for (double number : numbers.values)
        if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
    const bool integers = numbers.type == Numbers::Type::integer;
    const bool scientific = !integers && largest != 0 && (largest < 1e-3 || largest >= 1e6);
    if (integers) digits = 0;
    std::vector<std::string> texts;
    std::size_t width = integers || scientific ? 0 : static_cast<std::size_t>(digits) + 3;
    for (double number : numbers.values) {
        texts.push_back(std::isnan(number) ? "nan"
                        : scientific       ? fmt::format("{:.{}e}", number, digits)
                                           : fmt::format("{:.{}f}", number, digits));
        width = std::max(width, texts.back().size());
    }
    for (auto& text : texts) text.insert(0, width - text.size(), ' ');
    return texts;
}

constexpr std::size_t shown_at_each_end = 3;  // numbers at each end of a long row or column, as in NumPy
constexpr std::size_t longest_row = 8, longest_column = 8;

std::string joined(std::span<const std::string> texts) {
    if (texts.size() <= longest_row) return fmt::format("{}", fmt::join(texts, " "));
    return fmt::format("{} ... {}", fmt::join(texts.first(shown_at_each_end), " "),
                       fmt::join(texts.last(shown_at_each_end), " "));
}

void require_equal_sizes(const char* call, const Numbers& a, const Numbers& b) {
    if (a.values.size() != b.values.size())
        throw std::invalid_argument(
            fmt::format("[{}] {} numbers and {} numbers", call, a.values.size(), b.values.size()));
}
}  // namespace

double furthest(const Numbers& a, const Numbers& b) {
    require_equal_sizes("furthest", a, b);
    double most = 0;
    for (std::size_t i = 0; i < a.values.size(); ++i)
        most = std::max(most, std::abs(a.values[i] - b.values[i]));
    return most;
}

bool same_bits(const Numbers& a, const Numbers& b) {
    require_equal_sizes("same_bits", a, b);
    return std::equal(a.values.begin(), a.values.end(), b.values.begin(), [](double x, double y) {
        return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
    });
}

std::vector<double> ratios(const Numbers& a, const Numbers& b) {
    require_equal_sizes("ratios", a, b);
    std::vector<double> all = a.values;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] /= b.values[i];
    return all;
}

std::vector<double> scaled(const Numbers& numbers, double factor) {
    std::vector<double> all = numbers.values;
    for (double& number : all) number *= factor;
    return all;
}

double mean_of(const std::vector<double>& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

const char* to_string(Numbers::Type type) {
    constexpr const char* words[] = {"float32", "float64", "integer"};
    return words[static_cast<int>(type)];
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
    return fmt::format("({})", fmt::join(shape, ", "));
}

std::string row_text(const Numbers& numbers, int digits) {
    if (numbers.missing) return "-";
    return joined(printed(numbers, digits));
}

std::string short_text(double number) {
    if (number == 0) return "0";
    return std::isnan(number) ? "nan" : fmt::format("{:.1e}", number);
}

std::vector<std::string> lines_of(const Numbers& numbers, int digits) {
    if (numbers.missing) return {"-"};
    const auto texts = printed(numbers, digits);
    if (numbers.shape.empty()) return {texts.empty() ? "" : texts.front()};
    if (texts.empty()) return {"[]"};
    const auto columns = static_cast<std::size_t>(numbers.shape.back());
    const std::size_t rows = texts.size() / columns;
    std::vector<std::string> lines;
    for (std::size_t row = 0; row < rows; ++row) {
        if (rows > longest_column && row == shown_at_each_end) {
            lines.push_back("...");
            row = rows - shown_at_each_end;
        }
        lines.push_back("[" + joined(std::span(texts).subspan(row * columns, columns)) + "]");
    }
    return lines;
}

}  // namespace tally::lesson
