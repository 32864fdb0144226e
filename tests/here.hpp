// On which device the arrays of these tests live. Each program has its own answer: the CPU in tests/autograd,
// a simulated one in tests/gpu, a GPU in tests/cuda.
#pragma once

#include "tally/kernels/device.hpp"

namespace tally::test {

Device here();

}  // namespace tally::test
