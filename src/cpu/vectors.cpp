// Ends the program with a message if this processor lacks the vector instructions for which the other files are
// compiled. CMake compiles this file for every processor.
#include <cstdio>
#include <cstdlib>

#include "tally/cpu/vectors.hpp"

namespace tally::cpu {

extern const Vectors compiled_vectors;

const char* name_of(Vectors v) {
    return v == Vectors::avx512 ? "AVX-512" : v == Vectors::avx2 ? "AVX2" : "neither AVX-512 nor AVX2";
}

#if defined(__x86_64__) && defined(__linux__)
void require_vectors() {
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const Vectors has = __builtin_cpu_supports("avx512f") ? Vectors::avx512
                        : has_avx2                        ? Vectors::avx2
                                                          : Vectors::none;
    if (has >= compiled_vectors) return;
    std::fprintf(
        stderr,
        "tally is compiled for %s, and this processor has %s; build tally with -DTALLY_ARCH=native on "
        "this processor (for ./learn bench: set TALLY_ARCH=native)\n",
        name_of(compiled_vectors), name_of(has));
    std::_Exit(1);
}

namespace {
// Runs before the constructors of the other files, which may contain such instructions.
[[gnu::constructor(101)]] void before_other_constructors() { require_vectors(); }
}  // namespace
#else
void require_vectors() {}
#endif

}  // namespace tally::cpu
