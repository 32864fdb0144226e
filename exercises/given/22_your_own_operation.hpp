// Exercise 22, an operation of your own: what is given.
#pragma once
#include "exercise.hpp"

using namespace tally;

// softsign(x) = x / (1 + |x|), element by element; differentiable, so that gradcheck finds nothing to say.
Tensor64 softsign(const Tensor64& x);
HAND_IN(softsign);
