// Parses and checks the parameters of a lesson.
#include "course/kit/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "course/kit/running.hpp"
#include "course/kit/text.hpp"
#include "course/kit/wording.hpp"

namespace tally::lesson {

namespace {
using Kind = LessonParameter::Kind;

std::string plainly(double number) { return fmt::format("{:g}", number); }

bool spelled_in(const std::string& text, const char* letters) {
    return !text.empty() && text.find_first_not_of(letters) == std::string::npos;
}

// Parses one number. Returns false if the text is not a valid number of this Kind.
bool read(const std::string& text, Kind kind, double& number) {
    const bool is_real = kind == Kind::real, is_several = kind == Kind::several;
    const char* letters = is_real ? "0123456789.eE+-" : is_several ? "0123456789-" : "0123456789";
    if (!spelled_in(text, letters)) return false;
    char* end = nullptr;
    number = std::strtod(text.c_str(), &end);
    return *end == '\0';
}

bool allowed(const LessonParameter& parameter, const std::vector<double>& numbers) {
    if (numbers.size() != parameter.usual.size()) return false;
    if (!parameter.among.empty())
        return std::find(parameter.among.begin(), parameter.among.end(), numbers[0]) != parameter.among.end();
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](double number) { return number >= parameter.least && number <= parameter.most; });
}

std::vector<double> parse_setting(const LessonParameter& parameter, const std::string& text) {
    std::vector<double> numbers;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t comma = std::min(text.find(',', from), text.size());
        double number = 0;
        if (!read(text.substr(from, comma - from), parameter.kind, number)) {
            numbers.clear();
            break;
        }
        numbers.push_back(number);
        from = comma + 1;
    }
    if (numbers.empty() || !allowed(parameter, numbers))
        throw std::invalid_argument(fmt::format("--{} {}: it must be {}", parameter.name,
                                                text.empty() ? "''" : text, range_of(parameter)));
    return numbers;
}
}  // namespace

LessonParameter whole_number(std::string_view name, std::string_view meaning, int usual, int least,
                             int most) {
    return {.name = std::string(name),
            .meaning = std::string(meaning),
            .usual = {double(usual)},
            .least = double(least),
            .most = double(most)};
}

LessonParameter one_of(std::string_view name, std::string_view meaning, int usual,
                       const std::vector<int>& among) {
    LessonParameter parameter = whole_number(name, meaning, usual, among.front(), among.back());
    parameter.among.assign(among.begin(), among.end());
    return parameter;
}

LessonParameter real_number(std::string_view name, std::string_view meaning, double usual, double least,
                            double most) {
    return {.name = std::string(name),
            .meaning = std::string(meaning),
            .kind = Kind::real,
            .usual = {usual},
            .least = least,
            .most = most};
}

LessonParameter several(std::string_view name, std::string_view meaning, const std::vector<int>& usual,
                        int least, int most) {
    LessonParameter parameter{
        .name = std::string(name), .meaning = std::string(meaning), .kind = Kind::several};
    parameter.usual.assign(usual.begin(), usual.end());
    parameter.least = least, parameter.most = most;
    return parameter;
}

const std::vector<std::string>& parameter_names() {
    static const std::vector<std::string> names{"micro", "rate", "items", "steps", "ranks", "values"};
    return names;
}

std::string range_of(const LessonParameter& parameter) {
    if (parameter.kind == Kind::several && parameter.usual.size() > 1)
        return fmt::format("{} whole numbers from {} to {}, with commas", parameter.usual.size(),
                           plainly(parameter.least), plainly(parameter.most));
    std::vector<std::string> words;
    for (const double number : parameter.among) words.push_back(plainly(number));
    if (!words.empty()) return list_of(words, "or");
    return fmt::format("a {}number from {} to {}", parameter.kind == Kind::real ? "" : "whole ",
                       plainly(parameter.least), plainly(parameter.most));
}

std::string usual_of(const LessonParameter& parameter) {
    std::vector<std::string> words;
    for (const double number : parameter.usual) words.push_back(plainly(number));
    return joined(words, ",");
}

Settings settings_of(const std::vector<LessonParameter>& parameters,
                     const std::map<std::string, std::string>& given) {
    Settings settings;
    std::vector<std::string> taken;
    for (const auto& parameter : parameters) {
        const auto& names = parameter_names();
        if (std::find(names.begin(), names.end(), parameter.name) == names.end())
            throw std::logic_error(fmt::format("[settings_of] no such name: '{}'", parameter.name));
        settings[parameter.name] = parameter.usual;
        taken.push_back(fmt::format("--{} ({})", parameter.name, range_of(parameter)));
    }
    for (const auto& [name, text] : given) {
        const auto found =
            std::find_if(parameters.begin(), parameters.end(),
                         [&called = name](const auto& parameter) { return parameter.name == called; });
        if (found == parameters.end()) {
            throw std::invalid_argument(fmt::format(
                "--{}: this lesson has no such parameter; {}", name,
                taken.empty() ? "it has only --seed" : "it has " + list_of(taken, "and") + ", and --seed"));
        }
        settings[name] = parse_setting(*found, text);
    }
    return settings;
}

double Setting::number(bool whole) const {
    if (kind_ == Kind::several)
        throw std::logic_error(
            fmt::format("[setting] '{}' is several numbers; read it as std::vector<std::int64_t>", name_));
    if (whole && kind_ == Kind::real)
        throw std::logic_error(fmt::format("[setting] '{}' is a real number; read it as double", name_));
    return values_.at(0);
}

Setting::operator std::vector<std::int64_t>() const {
    if (kind_ != Kind::several)
        throw std::logic_error(fmt::format("[setting] '{}' is one number; read it as int or double", name_));
    return {values_.begin(), values_.end()};
}

Setting setting(std::string_view name) {
    for (const LessonParameter& declared : Running::now().lesson().parameters)
        if (declared.name == name) return {declared, options().settings.at(declared.name)};
    throw std::logic_error(fmt::format("[setting] the lesson does not declare a parameter '{}'", name));
}

bool settings_changed() { return Running::now().settings_changed(); }

}  // namespace tally::lesson
