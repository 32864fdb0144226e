// Parses and checks the parameters of a lesson.
#include "course/kit/dials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "course/kit/running.hpp"
#include "course/kit/text.hpp"
#include "course/kit/wording.hpp"

namespace tally::lesson {

namespace {
std::string plainly(double number) { return fmt::format("{:g}", number); }

bool spelled_in(const std::string& text, const char* letters) {
    return !text.empty() && text.find_first_not_of(letters) == std::string::npos;
}

// Parses one number. Returns false if the text is not a number of this kind.
bool read(const std::string& text, Dial::Kind kind, double& number) {
    const bool is_real = kind == Dial::Kind::real, is_several = kind == Dial::Kind::several;
    const char* letters = is_real ? "0123456789.eE+-" : is_several ? "0123456789-" : "0123456789";
    if (!spelled_in(text, letters)) return false;
    char* end = nullptr;
    number = std::strtod(text.c_str(), &end);
    return *end == '\0';
}

bool allowed(const Dial& dial, const std::vector<double>& numbers) {
    if (dial.kind == Dial::Kind::parts) {
        double sum = 0;
        for (const double part : numbers) sum += part;
        return sum == dial.most && *std::min_element(numbers.begin(), numbers.end()) >= 1;
    }
    if (numbers.size() != dial.usual.size()) return false;
    if (!dial.among.empty())
        return std::find(dial.among.begin(), dial.among.end(), numbers[0]) != dial.among.end();
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](double number) { return number >= dial.least && number <= dial.most; });
}

std::vector<double> turned_to(const Dial& dial, const std::string& text) {
    std::vector<double> numbers;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t comma = std::min(text.find(',', from), text.size());
        double number = 0;
        if (!read(text.substr(from, comma - from), dial.kind, number)) {
            numbers.clear();
            break;
        }
        numbers.push_back(number);
        from = comma + 1;
    }
    if (numbers.empty() || !allowed(dial, numbers))
        throw std::invalid_argument(
            fmt::format("--{} {}: it must be {}", dial.name, text.empty() ? "''" : text, range_of(dial)));
    return numbers;
}
}  // namespace

Dial whole_number(std::string_view name, std::string_view meaning, int usual, int least, int most) {
    return {.name = std::string(name),
            .meaning = std::string(meaning),
            .usual = {double(usual)},
            .least = double(least),
            .most = double(most)};
}

Dial one_of(std::string_view name, std::string_view meaning, int usual, const std::vector<int>& among) {
    Dial dial = whole_number(name, meaning, usual, among.front(), among.back());
    dial.among.assign(among.begin(), among.end());
    return dial;
}

Dial real_number(std::string_view name, std::string_view meaning, double usual, double least, double most) {
    return {.name = std::string(name),
            .meaning = std::string(meaning),
            .kind = Dial::Kind::real,
            .usual = {usual},
            .least = least,
            .most = most};
}

Dial parts_of(std::string_view name, std::string_view meaning, const std::vector<int>& usual) {
    Dial dial{.name = std::string(name), .meaning = std::string(meaning), .kind = Dial::Kind::parts};
    dial.usual.assign(usual.begin(), usual.end());
    dial.least = 1;
    for (const double part : dial.usual) dial.most += part;
    return dial;
}

Dial several(std::string_view name, std::string_view meaning, const std::vector<int>& usual, int least,
             int most) {
    Dial dial{.name = std::string(name), .meaning = std::string(meaning), .kind = Dial::Kind::several};
    dial.usual.assign(usual.begin(), usual.end());
    dial.least = least, dial.most = most;
    return dial;
}

const std::vector<std::pair<std::string, std::string>>& dial_names() {
    static const std::vector<std::pair<std::string, std::string>> names{
        {"micro", "micro-batches"},
        {"split", "sizes of the micro-batches, with commas"},
        {"rate", "learning rate"},
        {"items", "items, or layers"},
        {"steps", "updates"},
        {"ranks", "processes that work together"},
        {"values", "the numbers that are computed with, with commas"}};
    return names;
}

std::string range_of(const Dial& dial) {
    if (dial.kind == Dial::Kind::parts)
        return fmt::format("whole numbers from 1 up, with commas, that add up to {}", plainly(dial.most));
    if (dial.kind == Dial::Kind::several && dial.usual.size() > 1)
        return fmt::format("{} whole numbers from {} to {}, with commas",
                           in_words(static_cast<std::int64_t>(dial.usual.size())), plainly(dial.least),
                           plainly(dial.most));
    std::vector<std::string> words;
    for (const double number : dial.among) words.push_back(plainly(number));
    if (!words.empty()) return list_of(words, "or");
    return fmt::format("a {}number from {} to {}", dial.kind == Dial::Kind::real ? "" : "whole ",
                       plainly(dial.least), plainly(dial.most));
}

std::string usual_of(const Dial& dial) {
    std::vector<std::string> words;
    for (const double number : dial.usual) words.push_back(plainly(number));
    return joined(words, ",");
}

Settings settings_of(const std::vector<Dial>& dials, const std::map<std::string, std::string>& given) {
    Settings settings;
    std::vector<std::string> taken;
    for (const auto& dial : dials) {
        const auto& names = dial_names();
        if (std::none_of(names.begin(), names.end(),
                         [&](const auto& name) { return name.first == dial.name; }))
            throw std::logic_error(fmt::format("[dial] there is no flag --{}", dial.name));
        settings[dial.name] = dial.usual;
        taken.push_back(fmt::format("--{} ({})", dial.name, range_of(dial)));
    }
    for (const auto& [name, text] : given) {
        const auto found = std::find_if(dials.begin(), dials.end(),
                                        [&called = name](const auto& dial) { return dial.name == called; });
        if (found == dials.end()) {
            throw std::invalid_argument(fmt::format(
                "--{}: this lesson has no such number; {}", name,
                taken.empty() ? "none of its numbers can be turned, only --seed"
                              : "what can be turned is " + list_of(taken, "and") + ", and --seed"));
        }
        settings[name] = turned_to(*found, text);
    }
    return settings;
}

double Setting::number(bool whole) const {
    if (kind_ == Dial::Kind::parts || kind_ == Dial::Kind::several)
        throw std::logic_error(fmt::format("[dial] '{}' is {}, to be read as std::vector<std::int64_t>",
                                           name_, kind_ == Dial::Kind::parts ? "parts" : "several numbers"));
    if (whole && kind_ == Dial::Kind::real)
        throw std::logic_error(fmt::format("[dial] '{}' is a real number, to be read as double", name_));
    return values_.at(0);
}

Setting::operator std::vector<std::int64_t>() const {
    if (kind_ != Dial::Kind::parts && kind_ != Dial::Kind::several)
        throw std::logic_error(fmt::format("[dial] '{}' is one number, to be read as int or double", name_));
    return {values_.begin(), values_.end()};
}

Setting dial(std::string_view name) {
    for (const Dial& declared : Running::now().lesson().dials)
        if (declared.name == name) return {declared, options().dials.at(declared.name)};
    throw std::logic_error(fmt::format("[dial] the lesson's record declares no '{}'", name));
}

bool turned() { return Running::now().turned(); }

}  // namespace tally::lesson
