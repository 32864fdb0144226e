// Declares what exercise class-weights provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_class_weights {

struct Item {
    int label;
    double gradient;  // gradient of the item's loss without a weight
};
using Micro = std::vector<Item>;

}  // namespace exercise_class_weights

// Returns the gradient of the weighted mean over the items of all micro-batches, where an item has the weight
// of its label.
double gradient(const std::vector<Micro>& micros, const std::vector<double>& weight);
HAND_IN(gradient);
