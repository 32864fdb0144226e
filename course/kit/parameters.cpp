// Parses and checks the parameters of a lesson.
#include "course/kit/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "course/kit/running.hpp"
#include "course/kit/text.hpp"
#include "course/kit/wording.hpp"

namespace tally::lesson {

namespace {
using Kind = LessonParameter::Kind;

std::string plainly(double number) { return fmt::format("{:g}", number); }

// Parses numbers with commas between them. Returns no numbers if the text is not allowed.
std::vector<double> parse_setting(const LessonParameter& parameter, const std::string& text) {
    const char* letters = parameter.kind == Kind::real ? "0123456789.eE+-" : "0123456789-";
    std::vector<double> numbers;
    std::istringstream words(text + ",");  // so that a text with a comma at its end has an empty last word
    for (std::string word; std::getline(words, word, ',');) {
        char* end = nullptr;
        const double number = std::strtod(word.c_str(), &end);
        if (word.empty() || *end != '\0' || word.find_first_not_of(letters) != std::string::npos) return {};
        const bool is_allowed = parameter.among.empty()
                                    ? number >= parameter.least && number <= parameter.most
                                    : std::ranges::find(parameter.among, number) != parameter.among.end();
        if (!is_allowed) return {};
        numbers.push_back(number);
    }
    return numbers.size() == parameter.usual.size() ? numbers : std::vector<double>();
}
}  // namespace

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
        if (settings[name].empty())
            throw std::invalid_argument(
                fmt::format("--{} {}: it must be {}", name, text.empty() ? "''" : text, range_of(*found)));
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

}  // namespace tally::lesson
