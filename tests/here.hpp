// here() returns the device on which the tests allocate arrays, which is the CPU in tests/autograd, a
// simulated device in tests/gpu, and a GPU in tests/cuda.
#pragma once

#include "tally/kernels/device.hpp"

namespace tally::test {

Device here();

}  // namespace tally::test
