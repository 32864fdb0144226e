// Declares what exercise noise provides.
#pragma once
#include "exercise.hpp"

// Estimates the variance of ONE item's gradient from the mean gradients of micro-batches of `size` items
// each. The mean over many draws must be right (unbiased).
double item_variance(const std::vector<double>& means, int size);
HAND_IN(item_variance);
