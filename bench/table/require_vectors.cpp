// Ends the program with a message if this processor lacks the vector instructions for which the other files are
// compiled. CMake compiles this file for every processor.
#include <cstdio>
#include <cstdlib>

#include "bench/table/vectors.hpp"

namespace tally::bench {

extern const Vectors compiled_vectors;

#if defined(__x86_64__) && defined(__linux__)
namespace {

// Runs before the constructors of the other files, which may contain such instructions.
[[gnu::constructor(101)]] void require_vectors() {
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const Vectors has = __builtin_cpu_supports("avx512f") ? Vectors::avx512
                        : has_avx2                        ? Vectors::avx2
                                                          : Vectors::none;
    if (has >= compiled_vectors) return;
    std::fprintf(
        stderr,
        "bench_table is compiled for %s, and this processor has %s; to compile it for this processor, "
        "run TALLY_ARCH=native ./learn bench\n",
        name_of(compiled_vectors), name_of(has));
    std::_Exit(1);
}

}  // namespace
#endif

}  // namespace tally::bench
