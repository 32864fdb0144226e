// Asks the learner to predict a result, by options or by a typed number, and explains known mistakes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally::lesson {

// Holds one of several options: right("3 times"), or wrong("the same", "Nothing was divided ...").
struct Option {
    std::string text;
    std::string mistake;  // the explanation of a wrong option; empty: the option is right
};

// Holds an answer that may be typed: right(2.5).within(0.01), wrong(5, "That is the sum, not the mean.").
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

// Holds two hints. The first hint is a question, and the second hint points to the answer.
struct Hints {
    std::string question, pointer;
};
inline Hints hint(std::string_view question, std::string_view pointer) {
    return {std::string(question), std::string(pointer)};
}

// Holds one answer of the learner.
struct Try {
    std::optional<std::size_t> choice;  // index into `options`; empty: the typed number is unknown
    std::string typed;
};

// Holds a question. If a number is typed, `options` are the right number and mistakes, which are not shown.
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

// Both functions throw std::logic_error unless there are 2 to 9 options, of which exactly one has no mistake.
// They also throw if two numbers are too close to be distinguished.
Prediction prediction_of(std::string_view question, const std::vector<Option>& options, const Hints& hints,
                         std::string_view why);
Prediction prediction_of(std::string_view question, const std::vector<TypedNumber>& numbers,
                         const Hints& hints, std::string_view why);

// Drops mistakes that equal the answer or another mistake. Parameters of the learner can make them equal.
std::vector<TypedNumber> distinct(const std::vector<TypedNumber>& numbers);

// Puts the n options in an order that depends on lesson, prediction and seed. Over n successive seeds that
// begin at a multiple of n, each option has each position once.
void shuffle(Prediction& prediction, std::uint64_t seed, int lesson);

// Converts the typed text to a Try. Returns nothing if the text is not a number.
std::optional<Try> parse_try(const Prediction& prediction, const std::string& typed);
// Returns the reply to a wrong try: the explanation of a known mistake, or else a comparison with the answer.
std::string reply_to(const Prediction& prediction, const Try& wrong);

}  // namespace tally::lesson
