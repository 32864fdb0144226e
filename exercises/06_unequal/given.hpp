// Declares what exercise unequal provides.
#pragma once
#include "exercise.hpp"

using namespace tally;

// Leaves in w.grad() the gradient of the mean over all rows of all micro-batches of any sizes.
void accumulate(const std::vector<Tensor>& micros, const Tensor& w);
HAND_IN(accumulate);
