// Asks the learner to choose an option or to type a number, and explains known mistakes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally::lesson {

// Stores one option of a question, such as right("3 times") or wrong("the same", "Nothing was divided ...").
struct Option {
    std::string text;
    std::string mistake;  // the explanation of a wrong option; empty: the option is right
};

// Stores a possible number, such as right(2.5).within(0.01) or wrong(5, "That is the sum, not the mean.").
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

struct Try {
    std::optional<std::size_t> choice;  // index into `options`; empty: the typed number is unknown
    std::string typed;
};

// Stores a question. If a number is typed, `options` are the right number and mistakes, which are not shown.
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

// Both functions throw std::logic_error unless there are 2 to 9 options, of which exactly one is right. They
// also throw if two numbers are too close to be distinguished.
Prediction prediction_of(std::string_view question, const std::vector<Option>& options, const Hints& hints,
                         std::string_view why);
Prediction prediction_of(std::string_view question, const std::vector<TypedNumber>& numbers,
                         const Hints& hints, std::string_view why);

// Removes wrong numbers that equal the answer or another number. A changed parameter can make numbers equal.
std::vector<TypedNumber> distinct(const std::vector<TypedNumber>& numbers);

// Shuffles the n options in an order that depends on the lesson, the question and the seed. If n successive
// seeds begin at a multiple of n, each option has each position exactly once.
void shuffle(Prediction& prediction, std::uint64_t seed, int lesson);

// Returns the value of a number as people write it: 2/3, -0.5, 0,0625, 0.9^4 or 14 949.
std::optional<double> number_in(std::string text);

// Parses the typed text as an answer. Returns std::nullopt if the text is not a number.
std::optional<Try> parse_try(const Prediction& prediction, const std::string& typed);
// Returns the explanation of a known mistake, or a comparison with the right answer for other mistakes.
std::string reply_to(const Prediction& prediction, const Try& wrong);

}  // namespace tally::lesson
