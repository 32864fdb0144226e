// Shuffles the options of a question, and compares typed answers with known numbers.
#include "course/kit/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>

#include "tally/base/random.hpp"

namespace tally::lesson {

namespace {
// Allows slightly more than `within`, because rounding makes 0.1 + 0.2 different from 0.3.
bool close(double a, double b, double within) { return std::abs(a - b) <= within + 1e-9 * std::abs(b); }
}  // namespace

void drop_equal(Prediction& typed) {
    std::vector<Prediction::Known> kept{typed.options[typed.answer]};
    for (const auto& option : typed.options) {
        const bool meets = std::any_of(kept.begin(), kept.end(), [&](const auto& other) {
            return close(option.value, other.value, 2 * typed.within) ||
                   close(other.value, option.value, 2 * typed.within);
        });
        if (!meets) kept.push_back(option);
    }
    typed.options = std::move(kept);
    typed.answer = 0;
}

void require_distinct(const Prediction& typed) {
    const double apart = 2 * typed.within;
    for (const auto& a : typed.options)
        for (const auto& b : typed.options)
            if (&a != &b && close(a.value, b.value, apart))
                throw std::logic_error(fmt::format("[predict] '{}': {} and {} are within {} of each other",
                                                   typed.question, a.text, b.text, apart));
}

void shuffle(Prediction& prediction, std::uint64_t seed, int lesson) {
    if (prediction.is_typed) return;
    auto& options = prediction.options;
    const char right = options[prediction.answer].id;
    const auto stream = static_cast<std::uint64_t>(64 * lesson + prediction.id);
    for (std::size_t left = options.size(); left > 1; --left)
        std::swap(options[left - 1],
                  options[random::detail::bits(seed / options.size(), stream, left) % left]);
    std::rotate(options.begin(), options.begin() + static_cast<std::ptrdiff_t>(seed % options.size()),
                options.end());
    const auto is_right = [right](const auto& option) { return option.id == right; };
    const auto answer = std::find_if(options.begin(), options.end(), is_right);
    prediction.answer = static_cast<std::size_t>(answer - options.begin());
}

namespace {
constexpr double missing = std::numeric_limits<double>::quiet_NaN();
double quotient(const char*& at);

// The following functions read a part of a typed number. The result is NaN if a number is missing.
double plain(const char*& at) {
    if (*at == '(') {
        const double inside = quotient(++at);
        if (*at != ')') return missing;
        ++at;
        return std::isfinite(inside) ? inside : missing;
    }
    char* end = nullptr;
    const double number = std::strtod(at, &end);
    return std::exchange(at, end) == end ? missing : number;
}

double power(const char*& at) {
    if (*at == '-') return at[1] == '-' ? missing : -power(++at);
    const double base = plain(at);
    if (*at != '^') return base;
    const double exponent = plain(++at);  // std::pow(1, NaN) would be 1
    return std::isnan(base) || std::isnan(exponent) ? missing : std::pow(base, exponent);
}

double quotient(const char*& at) {
    const double number = power(at);
    return *at == '/' ? number / power(++at) : number;
}
}  // namespace

// Reads 0.5, 0,5, -2/3, 0.9^4 and 0.95^(1/64).
std::optional<double> number_in(std::string text) {
    std::replace(text.begin(), text.end(), ',', '.');
    std::erase(text, ' ');
    if (text.find_first_not_of("0123456789.eE+-^/()") != std::string::npos) return std::nullopt;
    const char* at = text.c_str();
    const double number = quotient(at);
    if (*at != '\0' || !std::isfinite(number)) return std::nullopt;
    return number;
}

std::optional<Try> parse_try(const Prediction& prediction, const std::string& typed) {
    const auto number = number_in(typed);
    if (!number) return std::nullopt;
    Try one{std::nullopt, typed};
    for (std::size_t i = 0; i < prediction.options.size(); ++i) {
        if (close(*number, prediction.options[i].value, prediction.within)) one.choice = i;
    }
    return one;
}

std::string reply_to(const Prediction& prediction, const Try& wrong) {
    if (wrong.choice) return prediction.options[*wrong.choice].mistake;
    const double typed = number_in(wrong.typed).value_or(0);
    const double right = prediction.options[prediction.answer].value;
    if (right != 0 && close(-typed, right, prediction.within)) return "The answer has the other sign.";
    return typed > right ? "The answer is smaller." : "The answer is larger.";
}

}  // namespace tally::lesson
