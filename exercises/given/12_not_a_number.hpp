// Exercise 12, not a number: what is given.
#pragma once
#include "exercise.hpp"

inline namespace exercise_12 {

struct Micro {
    std::vector<double> sum;  // of its items' gradients: one number for each weight
    int items;
};

}  // namespace exercise_12

// The mean gradient over the items of the micro-batches whose numbers are all finite; empty where there is none.
std::vector<double> gradient(const std::vector<Micro>& micros);
HAND_IN(gradient);
