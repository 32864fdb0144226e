// Declares what exercise set-or-add provides.
#pragma once
#include "exercise.hpp"

using tally::Into;
using tally::Write;
using Numbers = std::vector<double>;

// The backward function of y = factor * x writes factor * dy to the gradient of x, to.dst.
// to.how is Write::set (the first contribution overwrites to.dst) or Write::add (add to the earlier ones).
void times_backward(double factor, const Numbers& dy, Into<Numbers> to);
HAND_IN(times_backward);
