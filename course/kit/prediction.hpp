// Asks the learner to choose an option or to type a number, and explains known mistakes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tally::lesson {

// Holds two hints. The first hint is a question, and the second hint points to the answer.
struct Hints {
    std::string question, pointer;
};

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

// Removes wrong numbers that equal the right number or another number, and moves the right number to the front. A
// changed parameter can make numbers equal.
void drop_equal(Prediction& typed);
// Throws std::logic_error if two numbers are too close to be distinguished.
void require_distinct(const Prediction& typed);

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
