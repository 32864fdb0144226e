// Implements layer norm. The sums over each row use SIMD lanes. The gain's gradient is summed row by row.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/simd_loops.hpp"

namespace tally::cpu {

namespace {

// Calls the body with the array p (a gain or bias), or with the number `otherwise` if p is null.
template <class S, class Body> void with_optional(const S* p, S otherwise, Body body) {
    p ? body(Contiguous<S>{p}) : body(Broadcast<S>(otherwise));
}

// Divides a row by its largest magnitude before normalising, because its sum or squares overflow in S. Uses
// eps only if the variance is 0, because a variance of large numbers makes eps negligible.
template <class S, class Gains, class Biases>
[[gnu::cold, gnu::noinline]] void layer_norm_of_large(const S* x, Gains gains, Biases biases, S eps, S* y,
                                                      S& mean, S& rstd, std::size_t width) {
    const S n = static_cast<S>(width);
    S top = 0;
    for (std::size_t i = 0; i < width; ++i) top = std::max(top, std::abs(x[i]));
    const auto shrunk = [](auto v, auto by) { return v / by; };
    const auto squared_distance = [](auto v, auto by, auto m) { return (v / by - m) * (v / by - m); };
    const Broadcast<S> by(top);
    const S m = sum_run(S(0), width, 0, shrunk, Contiguous<S>{x}, by) / n;
    const S deviation = std::sqrt(
                sum_run(S(0), width, 0, squared_distance, Contiguous<S>{x}, by, Broadcast<S>(m)) / n),
            s = deviation == 0 ? S(1) : S(1) / deviation;
    simd_for_each<Write::set>(
        width, width, y,
        [](auto v, auto scale, auto mid, auto factor, auto g, auto b) {
            return (v / scale - mid) * factor * g + b;
        },
        Contiguous<S>{x}, by, Broadcast<S>(m), Broadcast<S>(s), gains, biases);
    mean = m * top;
    rstd = deviation == 0 ? S(1) / std::sqrt(eps) : s / top;
}

template <class S> void layer_norm(const S* x, const S* gain, const S* bias, S eps, S* y, S* mean, S* rstd,
                                   std::size_t rows, std::size_t width) {
    const S n = static_cast<S>(width);
    const auto squared_distance = [](auto v, auto m) { return (v - m) * (v - m); };
    const auto normalised = [](auto v, auto m, auto s, auto g, auto b) { return (v - m) * s * g + b; };
    with_optional(gain, S(1), [&](auto gains) {
        with_optional(bias, -S(0), [&](auto biases) {
            for (std::size_t r = 0; r < rows; ++r, x += width, y += width) {
                mean[r] = sum_in_lanes(x, width) / n;
                const Broadcast<S> m(mean[r]);
                const S variance = sum_run(S(0), width, 0, squared_distance, Contiguous<S>{x}, m) / n + eps;
                if (!(variance <= std::numeric_limits<S>::max()) && width > 0) {
                    layer_norm_of_large(x, gains, biases, eps, y, mean[r], rstd[r], width);
                    continue;
                }
                rstd[r] = S(1) / std::sqrt(variance);
                simd_for_each<Write::set>(width, width, y, normalised, Contiguous<S>{x}, m,
                                          Broadcast<S>(rstd[r]), gains, biases);
            }
        });
    });
}

template <class S> void layer_norm_back(const S* dy, const S* x, const S* gain, const S* mean, const S* rstd,
                                        Into<S[]> dx, std::size_t rows, std::size_t width) {
    const S n = static_cast<S>(width);
    const auto times = [](auto d, auto g) { return d * g; };
    const auto along = [](auto d, auto g, auto v, auto m, auto s) { return d * g * ((v - m) * s); };
    const auto slope = [](auto d, auto g, auto v, auto m, auto s, auto mean_slope, auto mean_along) {
        return s * (d * g - mean_slope - (v - m) * s * mean_along);
    };
    with_optional(gain, S(1), [&](auto gains) {
        for (std::size_t r = 0; r < rows; ++r, dy += width, x += width, dx.dst += width) {
            const Contiguous<S> d{dy}, v{x};
            const Broadcast<S> m(mean[r]), s(rstd[r]);
            const Broadcast<S> mean_slope(sum_run(S(0), width, 0, times, d, gains) / n);
            const Broadcast<S> mean_along(sum_run(S(0), width, 0, along, d, gains, v, m, s) / n);
            simd_for_each(width, dx, slope, d, gains, v, m, s, mean_slope, mean_along);
        }
    });
}

template <class S> void layer_norm_back_gain(const S* dy, const S* x, const S* mean, const S* rstd,
                                             Into<S[]> dgain, std::size_t rows, std::size_t width) {
    if (rows == 0 && dgain.how == Write::set) std::fill_n(dgain.dst, width, S(0));
    for (std::size_t r = 0; r < rows; ++r, dy += width, x += width) {
        simd_for_each(
            width, dgain, [](auto d, auto v, auto m, auto s) { return d * ((v - m) * s); }, Contiguous<S>{dy},
            Contiguous<S>{x}, Broadcast<S>(mean[r]), Broadcast<S>(rstd[r]));
        dgain.how = Write::add;
    }
}

}  // namespace

template <class S> void install_norm(Kernels<S>& t) {
    t.layer_norm = layer_norm<S>;
    t.layer_norm_back = layer_norm_back<S>;
    t.layer_norm_back_gain = layer_norm_back_gain<S>;
}

template void install_norm(Kernels<float>&);
template void install_norm(Kernels<double>&);

}  // namespace tally::cpu
