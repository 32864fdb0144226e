// What a lesson asks before it shows: options, or a number that is typed; each wrong one says which mistake it reveals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally::lesson {

// One option among several: right("3 times"), or wrong("the same", "Nothing was divided ...").
struct Option {
    std::string text;
    std::string mistake;  // what choosing it reveals; empty: it is right
};

// The same for a number that is typed: right(2.5).within(0.01), wrong(5, "That is the sum, not the mean.").
struct TypedNumber {
    double value;
    std::string mistake;
    double tolerance = 0;
    TypedNumber within(double distance) const { return {value, mistake, distance}; }
};

inline Option right(std::string_view text) { return {std::string(text), {}}; }
inline TypedNumber right(double value) { return {value, {}}; }
inline Option wrong(std::string_view text, std::string_view mistake) {
    return {std::string(text), std::string(mistake)};
}
inline TypedNumber wrong(double value, std::string_view mistake) { return {value, std::string(mistake)}; }

// For who asks once, and for who asks again.
struct Hints {
    std::string question, pointer;
};
inline Hints hint(std::string_view question, std::string_view pointer) {
    return {std::string(question), std::string(pointer)};
}

// What was pressed or typed.
struct Try {
    std::optional<std::size_t> choice;  // of the options as shown; none: a number that no known mistake gives
    std::string typed;
};

// What is asked, whatever its kind. The options of a typed number are not shown: it and its known mistakes.
struct Prediction {
    struct Known {
        char id;  // a, b, c, ... as the lesson's source has them, whatever the shuffle
        std::string text, mistake;
        double value = 0;
    };
    int id = 0;  // counts the predictions of a lesson, from 1
    bool is_typed = false;
    double within = 0;  // how far from a number one may be and mean it
    std::string question = {};
    std::vector<Known> options = {};
    std::size_t answer = 0;  // its place among them
    Hints hints = {};
    std::string why = {};

    std::size_t tries() const { return is_typed || options.size() > 2 ? 2 : 1; }
    bool is_right(const Try& one) const { return one.choice == answer; }
};

// Both refuse what an author should not ask: no right one or two of them, a wrong one without its mistake,
// numbers that cannot be told apart.
Prediction prediction_of(std::string_view question, const std::vector<Option>& options, const Hints& hints,
                         std::string_view why);
Prediction prediction_of(std::string_view question, const std::vector<TypedNumber>& numbers,
                         const Hints& hints, std::string_view why);

// Without the mistakes that at these numbers are none, or are another's: of numbers that can be turned.
std::vector<TypedNumber> told_apart(const std::vector<TypedNumber>& numbers);

// The options in another order for each lesson, prediction and seed. In the n seeds from a multiple of n on,
// each of n options stands in each place once.
void shuffle(Prediction& prediction, std::uint64_t seed, int lesson);

// Nothing where the text is no number.
std::optional<Try> tried(const Prediction& prediction, const std::string& typed);
// What to say of a try that is wrong: its mistake; of a number without one, where it lies.
std::string told(const Prediction& prediction, const Try& wrong);

}  // namespace tally::lesson
