// A LessonParameter is a number that the learner may change with a flag, such as ./learn 6 --micro 3. Flags,
// help texts, error messages and tests use the declarations of the parameters.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tally::lesson {

struct LessonParameter {
    enum class Kind : std::uint8_t { whole, real, several };

    std::string name;           // "micro" for --micro; one of parameter_names()
    std::string meaning;        // "micro-batches of the six rows"
    std::vector<double> usual;  // the default
    double least, most;         // the range of each number
    Kind kind = Kind::whole;
    std::vector<double> among = {};  // the allowed values; empty: all in the range
};

inline LessonParameter whole_number(std::string name, std::string meaning, int usual, int least, int most) {
    return {std::move(name), std::move(meaning), {double(usual)}, double(least), double(most)};
}
inline LessonParameter one_of(std::string name, std::string meaning, int usual,
                              const std::vector<int>& among) {
    LessonParameter parameter =
        whole_number(std::move(name), std::move(meaning), usual, among.front(), among.back());
    parameter.among.assign(among.begin(), among.end());
    return parameter;
}
inline LessonParameter real_number(std::string name, std::string meaning, double usual, double least,
                                   double most) {
    return {std::move(name), std::move(meaning), {usual}, least, most, LessonParameter::Kind::real};
}
// Declares a list of whole numbers, such as --values 2,-3,11. The list must be as long as the default.
inline LessonParameter several(std::string name, std::string meaning, const std::vector<int>& usual,
                               int least, int most) {
    return {std::move(name), std::move(meaning), {usual.begin(), usual.end()},
            double(least),   double(most),       LessonParameter::Kind::several};
}

// Returns the names of all parameters. A name has the same meaning in all lessons.
const std::vector<std::string>& parameter_names();

std::string range_of(const LessonParameter& parameter);  // "1, 2, 3 or 6", "a number from 0.01 to 1"
std::string usual_of(const LessonParameter& parameter);  // "2,-3,11"

using Settings = std::map<std::string, std::vector<double>, std::less<>>;
// `given` maps the names of flags to the values that the learner typed. Other parameters have default values.
// Throws std::invalid_argument for an invalid name or value.
Settings settings_of(const std::vector<LessonParameter>& parameters,
                     const std::map<std::string, std::string>& given);

// Stores the value of a parameter and converts the value to int, double or a vector, for example by
// const int n = setting("micro") or const std::vector<std::int64_t> sizes = setting("values").
// Throws std::logic_error if the parameter's kind does not permit the conversion.
class Setting {
public:
    Setting(const LessonParameter& parameter, std::vector<double> values)
        : name_(parameter.name), kind_(parameter.kind), values_(std::move(values)) {}
    template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) operator T() const {
        return static_cast<T>(number(std::is_integral_v<T>));
    }
    operator std::vector<std::int64_t>() const;

private:
    double number(bool whole) const;

    std::string name_;
    LessonParameter::Kind kind_;
    std::vector<double> values_;
};
Setting setting(std::string_view name);  // in the running lesson

}  // namespace tally::lesson
