// Each program that tests kernels has a file fast.cpp, which selects the tested kernels (tests/cpu, tests/gpu
// and tests/cuda).
#pragma once

#include <cstddef>

#include "tally/kernels/kernels.hpp"

namespace tally::test {

using namespace detail;

template <class S> const Kernels<S>& fast();
extern const bool is_on_gpu;

void* grab(std::size_t bytes);  // returns memory that is 64-byte aligned
void give(void* memory);

}  // namespace tally::test
