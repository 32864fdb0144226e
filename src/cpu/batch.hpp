// A Batch is a SIMD register of scalars. This header defines functions that load, store and compute batches.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns about the "undefined" registers in its own AVX-512 headers.
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <xsimd/xsimd.hpp>

#include "tally/base/alignment.hpp"
#include "tally/base/sanitizer.hpp"
#include "tally/kernels/formulas.hpp"

namespace tally::cpu {

template <class S> using Batch = xsimd::batch<S>;

template <class S> inline constexpr std::size_t lanes = Batch<S>::size;

using memory::line;

// Loads n elements that are `step` elements apart, and fills the remaining lanes with zeros.
template <class S> [[gnu::noinline]] Batch<S> load_copied(const S* p, std::ptrdiff_t step, std::size_t n) {
    alignas(line) S copied[lanes<S>] = {};
    for (std::size_t i = 0; i < n; ++i) copied[i] = p[static_cast<std::ptrdiff_t>(i) * step];
    return Batch<S>::load_aligned(copied);
}

// load_part() loads the first n elements, and fills the remaining lanes with zeros. store_part() stores the first n
// lanes. Neither accesses other memory. n is at most the number of lanes. g++'s AddressSanitizer does not check
// masked instructions, so builds with it use the functions after #else.
#if defined(__AVX512F__) && !TALLY_ASAN

inline Batch<float> load_part(const float* p, std::size_t n) {
    return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
}
inline Batch<double> load_part(const double* p, std::size_t n) {
    return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << n) - 1), p);
}
inline void store_part(Batch<float> v, float* p, std::size_t n) {
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
}
inline void store_part(Batch<double> v, double* p, std::size_t n) {
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << n) - 1), v);
}

#elif defined(__AVX2__) && !TALLY_ASAN

inline Batch<float> load_part(const float* p, std::size_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane));
}
inline Batch<double> load_part(const double* p, std::size_t n) {
    const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    return _mm256_maskload_pd(p, _mm256_cmpgt_epi64(_mm256_set1_epi64x(static_cast<long long>(n)), lane));
}
// On a Zen 3, a masked store takes 1.7 times as long as stores of 4, 2 and 1 elements.
inline void store_part(Batch<float> v, float* p, std::size_t n) {
    if (n >= lanes<float>) return v.store_unaligned(p);
    __m128 piece = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(p, piece);
        piece = _mm256_extractf128_ps(v, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi(reinterpret_cast<__m64*>(p), piece);
        piece = _mm_movehl_ps(piece, piece);
        p += 2;
    }
    if (n & 1) _mm_store_ss(p, piece);
}
inline void store_part(Batch<double> v, double* p, std::size_t n) {
    if (n >= lanes<double>) return v.store_unaligned(p);
    __m128d piece = _mm256_castpd256_pd128(v);
    if (n & 2) {
        _mm_storeu_pd(p, piece);
        piece = _mm256_extractf128_pd(v, 1);
        p += 2;
    }
    if (n & 1) _mm_store_sd(p, piece);
}

#else

template <class S> Batch<S> load_part(const S* p, std::size_t n) { return load_copied(p, 1, n); }
template <class S> [[gnu::noinline]] void store_part(Batch<S> v, S* p, std::size_t n) {
    alignas(line) S all[lanes<S>];
    v.store_aligned(all);
    for (std::size_t i = 0; i < n; ++i) p[i] = all[i];
}

#endif

}  // namespace tally::cpu

// formulas.hpp finds these functions for batches by argument-dependent lookup. The compiler prefers these
// functions to the templates of xsimd. Large functions are compiled once in batch.cpp, not in every loop.
namespace xsimd {

// Returns a * b + c, rounded once. (xsimd 8's fma rounds twice on some processors.)
#if defined(__AVX512F__)
inline batch<float> fused(batch<float> a, batch<float> b, batch<float> c) { return _mm512_fmadd_ps(a, b, c); }
inline batch<double> fused(batch<double> a, batch<double> b, batch<double> c) {
    return _mm512_fmadd_pd(a, b, c);
}
#elif defined(__AVX__) && defined(__FMA__)
inline batch<float> fused(batch<float> a, batch<float> b, batch<float> c) { return _mm256_fmadd_ps(a, b, c); }
inline batch<double> fused(batch<double> a, batch<double> b, batch<double> c) {
    return _mm256_fmadd_pd(a, b, c);
}
#else  // without the instruction: the same bits, computed slowly for each lane
template <class S> batch<S> fused(batch<S> a, batch<S> b, batch<S> c) {
    alignas(tally::memory::line) S x[batch<S>::size], y[batch<S>::size], z[batch<S>::size];
    a.store_aligned(x);
    b.store_aligned(y);
    c.store_aligned(z);
    for (std::size_t i = 0; i < batch<S>::size; ++i) z[i] = std::fma(x[i], y[i], z[i]);
    return batch<S>::load_aligned(z);
}
#endif

template <class To, class From> batch<To> same_bits(batch<From> x) {
#if XSIMD_VERSION_MAJOR < 9  // the template argument is the batch type
    return bitwise_cast<batch<To>>(x);
#else
    return bitwise_cast<To>(x);
#endif
}
inline batch<std::uint32_t> bits(batch<float> x) { return same_bits<std::uint32_t>(x); }
inline batch<std::uint64_t> bits(batch<double> x) { return same_bits<std::uint64_t>(x); }
inline batch<float> number(batch<std::uint32_t> words) { return same_bits<float>(words); }
inline batch<double> number(batch<std::uint64_t> words) { return same_bits<double>(words); }

// clang-format off
[[gnu::always_inline]] inline batch<float> exp(batch<float> x) { return tally::formula::exp(x); }
[[gnu::always_inline]] inline batch<double> exp(batch<double> x) { return tally::formula::exp(x); }
batch<float> log(batch<float>);  batch<double> log(batch<double>);
batch<float> tanh(batch<float>);  batch<double> tanh(batch<double>);
batch<float> erf(batch<float>);  batch<double> erf(batch<double>);
batch<float> sin(batch<float>);  batch<double> sin(batch<double>);
batch<float> cos(batch<float>);  batch<double> cos(batch<double>);
batch<float> pow(batch<float> x, batch<float> p);
batch<double> pow(batch<double> x, batch<double> p);
// clang-format on

}  // namespace xsimd
