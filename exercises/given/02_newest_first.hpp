// Exercise 2, newest first: what is given.
#pragma once
#include "exercise.hpp"

// Values in the order in which they were made: value i was made of the values inputs[i], all of them made before it.
using Inputs = std::vector<std::vector<int>>;

// The order in which backward, begun at value `from`, visits values: whoever visits one hands gradients to its inputs.
std::vector<int> order(const Inputs& inputs, int from);
HAND_IN(order);
