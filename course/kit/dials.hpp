// Numbers of a lesson that can be turned: ./learn 6 --micro 3. A lesson declares in its record which it
// takes, from where to where, and what each is otherwise; flags, help, refusals and tests read them there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tally::lesson {

struct Dial {
    enum class Kind : std::uint8_t { whole, real, parts, several };

    std::string name;     // "micro" for --micro: one of dial_names()
    std::string meaning;  // "micro-batches of the six rows"
    Kind kind = Kind::whole;
    std::vector<double> usual = {};  // without the flag
    double least = 0, most = 0;      // of a number, or of each of several; of parts, the sum
    std::vector<double> among = {};  // no others, where there are any
};

Dial whole_number(std::string_view name, std::string_view meaning, int usual, int least, int most);
Dial one_of(std::string_view name, std::string_view meaning, int usual, const std::vector<int>& among);
Dial real_number(std::string_view name, std::string_view meaning, double usual, double least, double most);
// How a number of things is cut into parts of one at least: --split 3,2,1.
Dial parts_of(std::string_view name, std::string_view meaning, const std::vector<int>& usual);
// As many whole numbers as there are otherwise: --values 2,-3,11.
Dial several(std::string_view name, std::string_view meaning, const std::vector<int>& usual, int least,
             int most);

// The flags that lessons share, so that one name is one thing in all of them: name, and what it turns.
const std::vector<std::pair<std::string, std::string>>& dial_names();

std::string range_of(const Dial& dial);  // "1, 2, 3 or 6", "whole numbers from 1 up that add up to 6"
std::string usual_of(const Dial& dial);  // "4,2"

using Settings = std::map<std::string, std::vector<double>, std::less<>>;
// What the texts of the flags (by name) make of a lesson's dials. Throws std::invalid_argument, whose
// sentence names what there is.
Settings settings_of(const std::vector<Dial>& dials, const std::map<std::string, std::string>& given);

// What a number is set to: const int n = dial("micro"); const std::vector<std::int64_t> sizes =
// dial("split"). A real number is no int, and neither parts nor several are a number: who reads one as
// another has forgotten what the record declares.
class Setting {
public:
    Setting(const Dial& dial, std::vector<double> values)
        : name_(dial.name), kind_(dial.kind), values_(std::move(values)) {}
    template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) operator T() const {
        return static_cast<T>(number(std::is_integral_v<T>));
    }
    operator std::vector<std::int64_t>() const;

private:
    double number(bool whole) const;

    std::string name_;
    Dial::Kind kind_;
    std::vector<double> values_;
};
Setting dial(std::string_view name);  // in the running lesson
bool turned();                        // is any of its numbers another than the usual?

}  // namespace tally::lesson
