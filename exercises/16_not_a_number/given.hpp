// Declares what exercise not-a-number provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_not_a_number {

struct Micro {
    std::vector<double> sum;  // the sum of the items' gradients, one number for each weight
    int items;
};

}  // namespace exercise_not_a_number

// Returns the mean gradient over the items of the micro-batches that contain only finite numbers. Returns an
// empty vector if there are none.
std::vector<double> gradient(const std::vector<Micro>& micros);
HAND_IN(gradient);
