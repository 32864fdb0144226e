// Declares what exercise the-tail provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_the_tail {

struct Micro {
    double sum;  // sum of the items' gradients
    int items;
};
using Epoch = std::vector<Micro>;

enum class Policy {
    scale,  // an epoch's tail makes its own update, divided by its number of items
    drop,   // an epoch's tail makes no update
    carry   // the next epoch completes an epoch's tail; the last tail makes no update
};

}  // namespace exercise_the_tail

// Returns the gradient of each update: the mean over the items of a window. A window is `size` micro-batches.
std::vector<double> updates(const std::vector<Epoch>& epochs, int size, Policy policy);
HAND_IN(updates);
