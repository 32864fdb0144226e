// The vector instructions for which this program is compiled, and goals that depend on them.
#pragma once

namespace tally::bench {

enum class Vectors { none, avx2, avx512 };

#if defined(__AVX512F__)
inline constexpr Vectors vectors = Vectors::avx512;
#elif defined(__AVX2__) && defined(__FMA__)
inline constexpr Vectors vectors = Vectors::avx2;
#else
inline constexpr Vectors vectors = Vectors::none;
#endif

constexpr const char* name_of(Vectors v) {
    return v == Vectors::avx512 ? "AVX-512" : v == Vectors::avx2 ? "AVX2" : "neither AVX-512 nor AVX2";
}

// Returns the first number for AVX-512, and the second for AVX2.
constexpr double by_vectors(double avx512, double avx2) { return vectors == Vectors::avx2 ? avx2 : avx512; }

}  // namespace tally::bench
