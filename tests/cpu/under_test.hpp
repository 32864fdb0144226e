// Each program of kernel tests defines its kernels and their memory in fast.cpp of tests/cpu, gpu or cuda.
#pragma once

#include <cstddef>

#include "tally/kernels/kernels.hpp"

namespace tally::test {

using namespace detail;

template <class S> const Kernels<S>& fast();

void* grab(std::size_t bytes);  // 64-byte aligned
void give(void* memory);

}  // namespace tally::test
