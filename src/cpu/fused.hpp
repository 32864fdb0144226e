// Defines fused multiply-add and the transposition of square blocks, which matrix products use.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "tally/cpu/batch.hpp"

namespace tally::cpu {

inline float fused(float a, float b, float c) { return std::fma(a, b, c); }
inline double fused(double a, double b, double c) { return std::fma(a, b, c); }
using xsimd::fused;

// Loads 16 bytes from each of several rows, which are `pitch` elements apart, into one register.
#if defined(__AVX512F__)

inline __m512 load_tiles(const float* p, std::size_t pitch) {
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(p));
    v = _mm512_insertf32x4(v, _mm_loadu_ps(p + pitch), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(p + 2 * pitch), 2);
    return _mm512_insertf32x4(v, _mm_loadu_ps(p + 3 * pitch), 3);
}
inline __m512d load_tiles(const double* p, std::size_t pitch) {
    const __m256d low =
        _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p)), _mm_loadu_pd(p + pitch), 1);
    p += 2 * pitch;
    const __m256d up =
        _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p)), _mm_loadu_pd(p + pitch), 1);
    return _mm512_insertf64x4(_mm512_castpd256_pd512(low), up, 1);
}

#elif defined(__AVX__) && defined(__FMA__)

inline __m256 load_tiles(const float* p, std::size_t pitch) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + pitch), 1);
}
inline __m256d load_tiles(const double* p, std::size_t pitch) {
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p)), _mm_loadu_pd(p + pitch), 1);
}

#else

template <class S> typename Batch<S>::register_type load_tiles(const S* p, std::size_t pitch) {
    constexpr std::size_t piece = 16 / sizeof(S);
    alignas(line) S copied[lanes<S>];
    for (std::size_t i = 0; i < lanes<S>; i += piece, p += pitch) std::memcpy(copied + i, p, 16);
    return Batch<S>::load_aligned(copied);
}

#endif

// Calls f with the constants 0, ..., n - 1, so that arrays that f indexes stay in registers.
template <std::size_t n, class F> [[gnu::always_inline]] inline void unrolled(F f) {
    [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
        (f(std::integral_constant<std::size_t, i>()), ...);
    }
    (std::make_index_sequence<n>());
}

// These functions access at most n elements at p, because another thread may write the elements after them.
template <class S> Batch<S> load_up_to(const S* p, std::size_t n) {
    return n >= lanes<S> ? Batch<S>::load_unaligned(p) : load_part(p, n);
}
template <class S> void store_up_to(Batch<S> v, S* p, std::size_t n) {
    n >= lanes<S> ? v.store_unaligned(p) : store_part(v, p, n);
}

template <class S> using LaneMatrix = std::array<Batch<S>, lanes<S>>;

// Alternates `wide` elements of a and of b, from the lower or upper half of each 16-byte piece.
template <class S, std::size_t wide, std::size_t half, class Lanes> Lanes interleaved(Lanes a, Lanes b) {
    constexpr std::size_t L = lanes<S>, piece = 16 / sizeof(S);
    return [&]<std::size_t... j>(std::index_sequence<j...>) {
        return __builtin_shufflevector(
            a, b,
            static_cast<int>(j / wide % 2 * L + j / piece * piece + half * piece / 2 +
                             j % piece / (2 * wide) * wide + j % wide)...);
    }
    (std::make_index_sequence<L>());
}

// Loads a square matrix whose rows are `pitch` elements apart, and returns the columns of this matrix.
template <class S>
[[gnu::always_inline]] inline LaneMatrix<S> load_transposed(const S* from, std::size_t pitch) {
    constexpr std::size_t piece = 16 / sizeof(S);
    LaneMatrix<S> columns;
    unrolled<lanes<S> / piece>([&](auto g) __attribute__((always_inline)) {
        const S* p = from + g * piece;
        const auto rows = [&](std::size_t r) { return load_tiles(p + r * pitch, piece * pitch); };
        const auto put = [&](std::size_t i, auto v) { columns[g * piece + i] = Batch<S>(v); };
        const auto a = rows(0), b = rows(1);
        const auto low = interleaved<S, 1, 0>(a, b), up = interleaved<S, 1, 1>(a, b);
        if constexpr (piece == 2) {
            put(0, low);
            put(1, up);
        } else {
            const auto c = rows(2), d = rows(3);
            const auto low2 = interleaved<S, 1, 0>(c, d), up2 = interleaved<S, 1, 1>(c, d);
            put(0, interleaved<S, 2, 0>(low, low2));
            put(1, interleaved<S, 2, 1>(low, low2));
            put(2, interleaved<S, 2, 0>(up, up2));
            put(3, interleaved<S, 2, 1>(up, up2));
        }
    });
    return columns;
}

// Returns the columns of a matrix whose height and width are at most the number of lanes.
template <class S> [[gnu::noinline]] LaneMatrix<S> load_transposed(const S* from, std::size_t pitch,
                                                                   std::size_t height, std::size_t width) {
    constexpr std::size_t L = lanes<S>;
    alignas(line) S copied[L * L];
    for (std::size_t i = 0; i < L; ++i) {
        const S* row = from + std::min(i, height - 1) * pitch;
        if (width == L)
            Batch<S>::load_unaligned(row).store_aligned(copied + i * L);
        else
            std::copy_n(row, width, copied + i * L);
    }
    return load_transposed<S>(copied, L);
}

}  // namespace tally::cpu
