// Functions of a SIMD batch: xsimd's, put right where they are wrong, and compiled once.
#include "tally/cpu/batch.hpp"

#include <cmath>
#include <limits>

namespace tally::cpu {

namespace {

// f of each pair of lanes, for what has no good SIMD form.
template <class S, class F> Batch<S> lane_by_lane(F f, const Batch<S>& x, const Batch<S>& y) {
    alignas(line) S a[lanes<S>], b[lanes<S>];
    x.store_aligned(a);
    y.store_aligned(b);
    for (std::size_t i = 0; i < lanes<S>; ++i) a[i] = f(a[i], b[i]);
    return Batch<S>::load_aligned(a);
}

template <class S> Batch<S> plain_log(const Batch<S>& x) {
    return xsimd::log<S, typename Batch<S>::arch_type>(x);
}

// xsimd's log of a denormal double is wrong from the first digit on.
Batch<double> log_of_denormals_too(const Batch<double>& x) {
    const Batch<double> y = plain_log(x);
    const auto tiny = x < Batch<double>(std::numeric_limits<double>::min());
    if (!xsimd::any(tiny)) return y;
    const Batch<double> scaled =
        plain_log<double>(x * Batch<double>(0x1p54)) - Batch<double>(54 * 0.693147180559945309417);
    return xsimd::select(tiny, scaled, y);
}

// xsimd's pow is off by up to 50 ulp, and wrong at 0, infinity and NaN. A square and its
// derivative are exact.
template <class S> Batch<S> pow_of_std(const Batch<S>& x, const Batch<S>& p) {
    if (xsimd::all(p == Batch<S>(S(2)))) return x * x;
    if (xsimd::all(p == Batch<S>(S(1)))) return x;
    return lane_by_lane<S>([](S a, S b) { return b == S(2) ? a * a : std::pow(a, b); }, x, p);
}

}  // namespace

}  // namespace tally::cpu

namespace xsimd {

using tally::cpu::lane_by_lane, tally::cpu::log_of_denormals_too, tally::cpu::pow_of_std;

using Float = batch<float>;
using Double = batch<double>;
using FloatArch = Float::arch_type;
using DoubleArch = Double::arch_type;

// clang-format off
Float log(Float x) { return log<float, FloatArch>(x); }
Double log(Double x) { return log_of_denormals_too(x); }
Float erf(Float x) { return erf<float, FloatArch>(x); }
Double erf(Double x) {  // xsimd's is off by up to 70 ulp, which gelu's tail multiplies
    return lane_by_lane<double>([](double a, double) { return std::erf(a); }, x, x);
}
Float sin(Float x) { return sin<float, FloatArch>(x); }
Double sin(Double x) { return sin<double, DoubleArch>(x); }
Float cos(Float x) { return cos<float, FloatArch>(x); }
Double cos(Double x) { return cos<double, DoubleArch>(x); }
Float pow(Float x, Float p) { return pow_of_std<float>(x, p); }
Double pow(Double x, Double p) { return pow_of_std<double>(x, p); }
// clang-format on

}  // namespace xsimd
