// The vector instructions for which a file is compiled.
#pragma once

namespace tally::cpu {

enum class Vectors { none, avx2, avx512 };

#if defined(__AVX512F__)
constexpr Vectors vectors = Vectors::avx512;
#elif defined(__AVX2__) && defined(__FMA__)
constexpr Vectors vectors = Vectors::avx2;
#else
constexpr Vectors vectors = Vectors::none;
#endif

const char* name_of(Vectors v);

// On x86-64 Linux, ends the program with a message if this processor lacks the vector instructions of tally's code.
void require_vectors();

}  // namespace tally::cpu
