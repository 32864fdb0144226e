// Exercise 1, set or add: what is given.
#pragma once
#include "exercise.hpp"

using tally::Into;
using tally::Write;
using Numbers = std::vector<double>;

// The backward rule of y = factor * x. Brings factor * dy to where the gradient of x lies: to.dst, of the same length.
// to.how is Write::set (this is the first part: overwrite whatever lies there) or Write::add (another part is there).
void times_backward(double factor, const Numbers& dy, Into<Numbers> to);
HAND_IN(times_backward);
