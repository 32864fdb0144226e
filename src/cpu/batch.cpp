// Defines large functions of SIMD batches, such as log(), so that each function is compiled only once.
#include "tally/cpu/batch.hpp"

#include <cmath>
#include <limits>

namespace tally::cpu {

namespace {

// Applies f to each pair of lanes, for functions that have no SIMD implementation.
template <class S, class F> Batch<S> lane_by_lane(F f, const Batch<S>& x, const Batch<S>& y) {
    alignas(line) S a[lanes<S>], b[lanes<S>];
    x.store_aligned(a);
    y.store_aligned(b);
    for (std::size_t i = 0; i < lanes<S>; ++i) a[i] = f(a[i], b[i]);
    return Batch<S>::load_aligned(a);
}

template <class S> Batch<S> sin_of(const Batch<S>& x) {
    if (xsimd::all(xsimd::abs(x) < formula::far_turn<Batch<S>>())) return formula::sin_of_turn<0>(x);
    return lane_by_lane<S>([](S a, S) { return formula::sin(a); }, x, x);
}

template <class S> Batch<S> cos_of(const Batch<S>& x) {
    if (xsimd::all(xsimd::abs(x) < formula::far_turn<Batch<S>>())) return formula::sin_of_turn<1>(x);
    return lane_by_lane<S>([](S a, S) { return formula::cos(a); }, x, x);
}

Batch<double> pow_of_positive(const Batch<double>& x, const Batch<double>& p) {
    return formula::pow_of_positive(x, p);
}

Batch<float> pow_of_positive(const Batch<float>& x, const Batch<float>& p) {
    alignas(line) float a[lanes<float>], b[lanes<float>];
    x.store_aligned(a);
    p.store_aligned(b);
    alignas(line) double c[lanes<float>], d[lanes<float>];
    for (std::size_t i = 0; i < lanes<float>; ++i) c[i] = a[i], d[i] = b[i];
    for (std::size_t i = 0; i < lanes<float>; i += lanes<double>)
        formula::short_pow_of_positive(Batch<double>::load_aligned(c + i), Batch<double>::load_aligned(d + i))
            .store_aligned(c + i);
    for (std::size_t i = 0; i < lanes<float>; ++i) a[i] = static_cast<float>(c[i]);
    return Batch<float>::load_aligned(a);
}

template <class S> Batch<S> pow_of(const Batch<S>& x, const Batch<S>& p) {
    const Batch<S> zero(S(0)), one(S(1)), two(S(2)), most(std::numeric_limits<S>::max());
    const auto squared = p == two;
    if (xsimd::all(squared)) return x * x;  // a common case: a square
    if (xsimd::all(p == one)) return x;
    if (xsimd::all((x > zero) & (x <= most) & (xsimd::abs(p) <= most)))
        return xsimd::select(squared, x * x, xsimd::select(p == one, x, pow_of_positive(x, p)));
    return lane_by_lane<S>([](S a, S b) { return formula::pow(a, b); }, x, p);
}

}  // namespace

}  // namespace tally::cpu

namespace xsimd {

using tally::cpu::cos_of, tally::cpu::pow_of, tally::cpu::sin_of;

using Float = batch<float>;
using Double = batch<double>;

// clang-format off
Float log(Float x) { return tally::formula::log(x); }
Double log(Double x) { return tally::formula::log(x); }
Float tanh(Float x) { return tally::formula::tanh(x); }
Double tanh(Double x) { return tally::formula::tanh(x); }
Float erf(Float x) { return tally::formula::erf(x); }
Double erf(Double x) { return tally::formula::erf(x); }
Float sin(Float x) { return sin_of(x); }
Double sin(Double x) { return sin_of(x); }
Float cos(Float x) { return cos_of(x); }
Double cos(Double x) { return cos_of(x); }
Float pow(Float x, Float p) { return pow_of(x, p); }
Double pow(Double x, Double p) { return pow_of(x, p); }
// clang-format on

}  // namespace xsimd
