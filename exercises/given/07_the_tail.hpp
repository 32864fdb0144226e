// Exercise 7, the tail: what is given.
#pragma once
#include "exercise.hpp"

inline namespace exercise_07 {

struct Micro {
    double sum;  // of its items' gradients
    int items;
};
using Epoch = std::vector<Micro>;

enum class Policy {
    scale,  // an epoch's tail makes an update of its own, divided by the items that came
    drop,   // an epoch's tail makes no update, and is forgotten
    carry  // an epoch's tail stays, and the next epoch fills it up; what is left at the very end makes no update
};

}  // namespace exercise_07

// The gradient of each update: the mean over the items of a window. A window is `size` micro-batches.
std::vector<double> updates(const std::vector<Epoch>& epochs, int size, Policy policy);
HAND_IN(updates);
