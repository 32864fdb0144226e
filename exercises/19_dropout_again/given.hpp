// Declares what exercise dropout-again provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_dropout_again {

struct Place {
    std::uint64_t seed;  // of this update
    std::uint64_t layer;
    std::int64_t first_item;  // the micro-batch's first item, counted from the beginning of the window
};

// A number from 0 to 1, always the same for the same arguments.
inline double random(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    return tally::uniform({1}, 0, 1, {.seed = seed, .stream = stream * 1000003 + index}).item();
}

}  // namespace exercise_dropout_again

// Returns the factors of dropout for `items` items: 0 with probability p, else 1 / (1 - p). Within an update,
// item i of the window always has the same factor, in every micro-batch and every call.
std::vector<double> mask(const Place& place, int items, double p);
HAND_IN(mask);
