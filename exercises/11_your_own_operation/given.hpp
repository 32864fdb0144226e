// Declares what exercise your-own-operation provides.
#pragma once
#include "exercise.hpp"

using namespace tally;

// softsign(x) = x / (1 + |x|), element by element, with a gradient that passes gradcheck.
Tensor64 softsign(const Tensor64& x);
HAND_IN(softsign);
