// a * b + c rounded once, of numbers and of SIMD batches: what every product is made of. (xsimd 8's fma rounds
// twice on some processors.) And a square of lanes, turned.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "tally/cpu/batch.hpp"

namespace tally::cpu {

inline float fused(float a, float b, float c) { return std::fma(a, b, c); }
inline double fused(double a, double b, double c) { return std::fma(a, b, c); }

#if defined(__AVX512F__)

inline Batch<float> fused(Batch<float> a, Batch<float> b, Batch<float> c) { return _mm512_fmadd_ps(a, b, c); }
inline Batch<double> fused(Batch<double> a, Batch<double> b, Batch<double> c) {
    return _mm512_fmadd_pd(a, b, c);
}

#elif defined(__AVX__) && defined(__FMA__)

inline Batch<float> fused(Batch<float> a, Batch<float> b, Batch<float> c) { return _mm256_fmadd_ps(a, b, c); }
inline Batch<double> fused(Batch<double> a, Batch<double> b, Batch<double> c) {
    return _mm256_fmadd_pd(a, b, c);
}

#else  // lane by lane: the same bits where a processor has no such instruction, slowly

template <class S> Batch<S> fused(Batch<S> a, Batch<S> b, Batch<S> c) {
    alignas(line) S x[lanes<S>], y[lanes<S>], z[lanes<S>];
    a.store_aligned(x);
    b.store_aligned(y);
    c.store_aligned(z);
    for (std::size_t i = 0; i < lanes<S>; ++i) z[i] = std::fma(x[i], y[i], z[i]);
    return Batch<S>::load_aligned(z);
}

#endif

// f(0), f(1), ..., f(n - 1), each with its number as a constant: what they index stays in registers.
template <std::size_t n, class F> [[gnu::always_inline]] inline void unrolled(F f) {
    [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
        (f(std::integral_constant<std::size_t, i>()), ...);
    }
    (std::make_index_sequence<n>());
}

// What follows the n elements in their line may be read too.
template <class S> Batch<S> load_up_to(const S* p, std::size_t n) {
    return n >= lanes<S> ? Batch<S>::load_unaligned(p) : load_part(p, n);
}

template <class S> using Square = std::array<Batch<S>, lanes<S>>;

// Exchanges the off-diagonal quarters of all squares of 2 * step lanes in rows a and b, which lie `step` apart.
template <class S, std::size_t step> void exchange(Batch<S>& a, Batch<S>& b) {
    using Lanes = typename Batch<S>::register_type;
    constexpr std::size_t L = lanes<S>;
    const Lanes x = a, y = b;
    [&]<std::size_t... j>(std::index_sequence<j...>) {
        a = Batch<S>(__builtin_shufflevector(x, y, static_cast<int>(j & step ? L + j - step : j)...));
        b = Batch<S>(__builtin_shufflevector(x, y, static_cast<int>(j & step ? L + j : j + step)...));
    }
    (std::make_index_sequence<L>());
}

template <class S, std::size_t step = 1> void turn(Square<S>& rows) {
    if constexpr (step < lanes<S>) {
        unrolled<lanes<S>>([&](auto i) __attribute__((always_inline)) {
            if constexpr ((i & step) == 0) exchange<S, step>(rows[i], rows[i + step]);
        });
        turn<S, step * 2>(rows);
    }
}

}  // namespace tally::cpu
