// Declares what exercise dropout-again provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_dropout_again {

struct Place {
    std::uint64_t seed;  // of this update
    std::uint64_t layer;
    std::int64_t first_item;  // the micro-batch's first item, counted from the beginning of the window
};

// Returns a random number from 0 to 1, always the same for the same arguments.
inline double random(std::uint64_t seed, std::uint64_t layer, std::uint64_t item) {
    return tally::uniform({1}, 0, 1, {.seed = seed, .stream = layer * 1000003 + item}).item();
}

}  // namespace exercise_dropout_again

// Returns the dropout factors of `items` items: 0 with probability p, and otherwise 1 / (1 - p). In one update,
// item i of the window always has the same factor, in each micro-batch and each call.
std::vector<double> mask(const Place& place, int items, double p);
HAND_IN(mask);
