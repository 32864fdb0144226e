// A program that claims to be compiled for AVX-512, but has no such instructions. Without AVX-512, main() must not run.
#include <cstdio>

#include "tally/cpu/vectors.hpp"

namespace tally::cpu {
extern const Vectors compiled_vectors;
const Vectors compiled_vectors = Vectors::avx512;
}  // namespace tally::cpu

int main() {
    std::puts(__builtin_cpu_supports("avx512f") ? "this processor has AVX-512"
                                                : "require_vectors() did not run");
}
