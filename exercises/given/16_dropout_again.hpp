// Exercise 16, dropout again: what is given.
#pragma once
#include "exercise.hpp"

inline namespace exercise_16 {

struct Place {
    std::uint64_t seed;  // of this update
    std::uint64_t layer;
    std::int64_t first_item;  // of the micro-batch, counted from the beginning of the window
};

// A number from 0 to 1, always the same for the same three.
inline double random(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    return tally::uniform({1}, 0, 1, {.seed = seed, .stream = stream * 1000003 + index}).item();
}

}  // namespace exercise_16

// The factors of dropout for `items` items: 0 with probability p, else 1 / (1 - p). Item i of the window has always the
// same factor in an update, in whatever micro-batch it comes and however often it is asked for.
std::vector<double> mask(const Place& place, int items, double p);
HAND_IN(mask);
