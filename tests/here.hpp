// here() is the device of a program's tests: the CPU in tests/autograd, an emulated device in tests/gpu, a GPU
// in tests/cuda.
#pragma once

#include "tally/kernels/device.hpp"

namespace tally::test {

Device here();

}  // namespace tally::test
