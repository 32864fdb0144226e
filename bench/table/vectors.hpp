// Goals that depend on the vector instructions for which this program is compiled.
#pragma once

#include "tally/cpu/vectors.hpp"

namespace tally::bench {

// Returns the first number for AVX-512, and the second for AVX2.
constexpr double by_vectors(double avx512, double avx2) {
    return cpu::vectors == cpu::Vectors::avx2 ? avx2 : avx512;
}

}  // namespace tally::bench
