// What a program of kernel tests says about itself: its kernels, and memory that they can reach. Each has its
// own answers: tests/cpu/fast.cpp, tests/gpu/fast.cpp, tests/cuda/fast.cpp.
#pragma once

#include <cstddef>

#include "tally/kernels/kernels.hpp"

namespace tally::test {

using namespace detail;

template <class S> const Kernels<S>& fast();

void* grab(std::size_t bytes);  // 64-byte aligned
void give(void* memory);

}  // namespace tally::test
