// Declares what exercise newest-first provides.
#pragma once
#include "exercise.hpp"

// inputs[i] has the inputs of value i. Their numbers are smaller than i, because they were computed earlier.
using Inputs = std::vector<std::vector<int>>;

// Returns the values in the order in which backward() visits them, beginning with `from`. A visit adds to the
// gradients of the inputs.
std::vector<int> order(const Inputs& inputs, int from);
HAND_IN(order);
