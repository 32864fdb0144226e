// Declares what exercise newest-first provides.
#pragma once
#include "exercise.hpp"

// Values in the order of their creation: value i was made of the values inputs[i], all of them older.
using Inputs = std::vector<std::vector<int>>;

// Returns the order in which backward() visits values, from value `from` on. Visits add to inputs' gradients.
std::vector<int> order(const Inputs& inputs, int from);
HAND_IN(order);
