// A question that a lesson asks before the result, with options or a typed number. Mistakes are explained.
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
    std::string mistake;  // the explanation of a wrong option; empty: the option is right
};

// An answer that the learner types: right(2.5).within(0.01), wrong(5, "That is the sum, not the mean.").
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

// The texts of the first and the second hint.
struct Hints {
    std::string question, pointer;
};
inline Hints hint(std::string_view question, std::string_view pointer) {
    return {std::string(question), std::string(pointer)};
}

// An answer of the learner.
struct Try {
    std::optional<std::size_t> choice;  // index of the option as shown; empty: an unknown typed number
    std::string typed;
};

// A question of either kind. The options of a typed number, its value and the known mistakes, are not shown.
struct Prediction {
    struct Known {
        char id;  // a, b, c, ... in the order of the lesson's source, before the shuffle
        std::string text, mistake;
        double value = 0;
    };
    int id = 0;  // the number of the question in the lesson, from 1
    bool is_typed = false;
    double within = 0;  // the tolerance of a typed number
    std::string question = {};
    std::vector<Known> options = {};
    std::size_t answer = 0;  // index of the right option
    Hints hints = {};
    std::string why = {};

    std::size_t tries() const { return is_typed || options.size() > 2 ? 2 : 1; }
    bool is_right(const Try& one) const { return one.choice == answer; }
};

// Both throw std::logic_error unless there are 2 to 9 options and exactly one of them has no mistake, and if
// two numbers are too close to be distinguished.
Prediction prediction_of(std::string_view question, const std::vector<Option>& options, const Hints& hints,
                         std::string_view why);
Prediction prediction_of(std::string_view question, const std::vector<TypedNumber>& numbers,
                         const Hints& hints, std::string_view why);

// Drops mistakes that equal the answer or another mistake, as may happen with changed parameters.
std::vector<TypedNumber> distinct(const std::vector<TypedNumber>& numbers);

// Puts the options in an order that depends on lesson, prediction and seed. Over n seeds that begin with a
// multiple of n, each of the n options is in each place once.
void shuffle(Prediction& prediction, std::uint64_t seed, int lesson);

// Returns nothing if the text is not a number.
std::optional<Try> parse_try(const Prediction& prediction, const std::string& typed);
// Returns the reply to a wrong try: its mistake, or for an unknown number a comparison with the answer.
std::string reply_to(const Prediction& prediction, const Try& wrong);

}  // namespace tally::lesson
