// Exercise 12, not a number: what is given.
#pragma once
#include "exercise.hpp"

inline namespace exercise_12 {

struct Micro {
    std::vector<double> sum;  // sum of the items' gradients: one number for each weight
    int items;
};

}  // namespace exercise_12

// Returns the mean gradient over the items of micro-batches with finite numbers only; empty if there are none.
std::vector<double> gradient(const std::vector<Micro>& micros);
HAND_IN(gradient);
