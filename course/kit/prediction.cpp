// Checks and shuffles the questions of a lesson, and compares typed answers with known numbers.
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
void reject(std::string_view question, std::string_view why) {
    throw std::logic_error(fmt::format("[predict] '{}': {}", question, why));
}

// Allows slightly more than `within`, because rounding makes 0.1 + 0.2 different from 0.3.
bool close(double a, double b, double within) { return std::abs(a - b) <= within + 1e-9 * std::abs(b); }

Prediction checked(Prediction asked) {
    const auto count = asked.options.size();
    if (count < 2 || count > 9) reject(asked.question, fmt::format("{} options; there may be 2 to 9", count));
    const auto is_right = [](const auto& option) { return option.mistake.empty(); };
    const auto right = std::count_if(asked.options.begin(), asked.options.end(), is_right);
    if (right != 1)
        reject(asked.question, fmt::format("{} of its options have no mistake; one is right", right));
    const auto answer = std::find_if(asked.options.begin(), asked.options.end(), is_right);
    asked.answer = static_cast<std::size_t>(answer - asked.options.begin());
    for (std::size_t i = 0; i < count; ++i) asked.options[i].id = static_cast<char>('a' + i);
    return asked;
}
}  // namespace

Prediction prediction_of(std::string_view question, const std::vector<Option>& options, const Hints& hints,
                         std::string_view why) {
    Prediction asked{.question = std::string(question), .hints = hints, .why = std::string(why)};
    for (const auto& [text, mistake] : options) asked.options.push_back({'a', text, mistake});
    return checked(std::move(asked));
}

Prediction prediction_of(std::string_view question, const std::vector<TypedNumber>& numbers,
                         const Hints& hints, std::string_view why) {
    Prediction asked{
        .is_typed = true, .question = std::string(question), .hints = hints, .why = std::string(why)};
    for (const auto& [value, mistake, within] : numbers) {
        asked.within = std::max(asked.within, within);
        asked.options.push_back({'a', fmt::format("{:.10g}", value), mistake, value});
    }
    for (const auto& a : asked.options)
        for (const auto& b : asked.options)
            if (&a != &b && close(a.value, b.value, 2 * asked.within))
                reject(question, fmt::format("{} and {} are within {} of each other", a.text, b.text,
                                             2 * asked.within));
    return checked(std::move(asked));
}

std::vector<TypedNumber> distinct(const std::vector<TypedNumber>& numbers) {
    std::vector<TypedNumber> kept;
    double within = 0;
    for (const auto& number : numbers) {
        within = std::max(within, number.tolerance);
        if (number.mistake.empty()) kept.push_back(number);
    }
    for (const auto& number : numbers) {
        const bool meets = std::any_of(kept.begin(), kept.end(), [&](const auto& other) {
            return close(number.value, other.value, 2 * within) ||
                   close(other.value, number.value, 2 * within);
        });
        if (!meets) kept.push_back(number);
    }
    return kept;
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
