// Computes softmax, log_softmax, logsumexp and their gradients. Columns are processed in strips.
#include "tally/cpu/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/simd_loops.hpp"
#include "tally/kernels/functors.hpp"

namespace tally::cpu {

namespace {

using formula::exp, formula::log;

const auto times = [](auto a, auto b) { return a * b; };
const auto exp_less = [](auto v, auto shift) { return exp(v - shift); };
const auto less_less = [](auto v, auto a, auto b) { return v - a - b; };
const auto log_plus = [](auto total, auto shift) { return log(total) + shift; };
const auto softmax_slope = [](auto y, auto dy, auto total) { return y * (dy - total); };
const auto log_softmax_slope = [](auto y, auto dy, auto total) { return dy - exp(y) * total; };
const auto logsumexp_slope = [](auto x, auto dy, auto y) { return dy * exp(x - y); };

struct FiniteShift {  // replaces infinity by 0, because inf - inf would be NaN
    template <class T> T operator()(T largest) const {
        const T infinity = as<T>(std::numeric_limits<double>::infinity());
        return select(largest == infinity, as<T>(0), select(largest == -infinity, as<T>(0), largest));
    }
};

// An `Exps` computes exp(x - m), and also writes each value to y.
template <class S> struct Exps {
    const S* x;
    S* y;
    Batch<S> m;
    Batch<S> whole(std::size_t i) const {
        const Batch<S> v = exp(Batch<S>::load_unaligned(x + i) - m);
        v.store_unaligned(y + i);
        return v;
    }
    Batch<S> part(std::size_t i, std::size_t n) const {
        const Batch<S> v = exp(load_part(x + i, n) - m);
        store_part(v, y + i, n);
        return v;
    }
    Exps from(std::size_t i) const { return {x + i, y + i, m}; }
};

// Finds the largest element of each column of x.
template <class S>
void largest_of_columns(const S* x, std::size_t rows, std::size_t pitch, std::size_t width, S* m) {
    std::copy_n(x, width, m);
    for (std::size_t r = 1; r < rows; ++r)
        simd_for_each<Write::set>(width, strip, m, Larger(), Contiguous<S>{m}, Contiguous<S>{x + r * pitch});
}

template <class S, bool logarithm>
void softmax_columns(const S* x, S* y, std::size_t rows, std::size_t pitch, std::size_t width) {
    alignas(line) S m[strip], total[strip];
    largest_of_columns(x, rows, pitch, width, m);
    std::fill_n(total, width, S(0));
    for (std::size_t r = 0; r < rows; ++r) {
        simd_for_each<Write::set>(width, width, y + r * pitch, exp_less, Contiguous<S>{x + r * pitch},
                                  Contiguous<S>{m});
        simd_for_each<Write::add>(width, width, total, Identity(), Contiguous<S>{y + r * pitch});
    }
    simd_for_each<Write::set>(
        width, strip, total,
        [](auto t) {
            if constexpr (logarithm)
                return log(t);
            else
                return as<decltype(t)>(1) / t;
        },
        Contiguous<S>{total});
    for (std::size_t r = 0; r < rows; ++r) {
        if constexpr (logarithm)
            simd_for_each<Write::set>(width, width, y + r * pitch, less_less, Contiguous<S>{x + r * pitch},
                                      Contiguous<S>{m}, Contiguous<S>{total});
        else
            simd_for_each<Write::set>(width, width, y + r * pitch, times, Contiguous<S>{y + r * pitch},
                                      Contiguous<S>{total});
    }
}

template <class S> void log_softmax_row(const S* x, S* y, std::size_t n) {
    const SoftmaxRow<S> row = softmax_row(x, y, n);
    simd_for_each<Write::set>(n, n, y, less_less, Contiguous<S>{x}, Broadcast<S>(row.largest),
                              Broadcast<S>(row.log_total));
}

template <class S, bool logarithm> void softmax_or_log(const S* x, S* y, const detail::ReduceDims& dims) {
    const std::size_t size = dims.reduced * dims.inner;
    if (size == 0) return;
    for (std::size_t o = 0; o < dims.outer; ++o, x += size, y += size) {
        if (dims.inner == 1)
            logarithm ? log_softmax_row(x, y, dims.reduced) : void(softmax_row(x, y, dims.reduced));
        else
            for_column_tiles(dims.inner, [&](std::size_t i, std::size_t width) {
                softmax_columns<S, logarithm>(x + i, y + i, dims.reduced, dims.inner, width);
            });
    }
}

// Computes dx by slope(y, dy, total), where `total` is the sum of terms(dy, y) along the axis.
template <class S, class Terms, class Slope>
void back(const S* dy, const S* y, Into<S[]> dx, const detail::ReduceDims& dims, Terms terms, Slope slope) {
    const std::size_t size = dims.reduced * dims.inner;
    for (std::size_t o = 0; o < dims.outer; ++o, dy += size, y += size, dx.dst += size) {
        if (dims.inner == 1) {
            const Broadcast<S> total(
                sum_run(S(0), dims.reduced, 0, terms, Contiguous<S>{dy}, Contiguous<S>{y}));
            simd_for_each(dims.reduced, dx, slope, Contiguous<S>{y}, Contiguous<S>{dy}, total);
            continue;
        }
        for_column_tiles(dims.inner, [&](std::size_t i, std::size_t width) {
            alignas(line) S total[strip];
            std::fill_n(total, width, S(0));
            for (std::size_t at = i; at < size; at += dims.inner)
                simd_for_each<Write::add>(width, width, total, terms, Contiguous<S>{dy + at},
                                          Contiguous<S>{y + at});
            for (std::size_t at = i; at < size; at += dims.inner)
                simd_for_each(width, from(dx, at), slope, Contiguous<S>{y + at}, Contiguous<S>{dy + at},
                              Contiguous<S>{total});
        });
    }
}

template <class S> void softmax(const S* x, S* y, const detail::ReduceDims& dims) {
    softmax_or_log<S, false>(x, y, dims);
}

template <class S> void log_softmax(const S* x, S* y, const detail::ReduceDims& dims) {
    softmax_or_log<S, true>(x, y, dims);
}

template <class S> void softmax_back(const S* dy, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    back(dy, y, dx, dims, times, softmax_slope);
}

template <class S>
void log_softmax_back(const S* dy, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    back(
        dy, y, dx, dims, [](auto d, auto) { return d; }, log_softmax_slope);
}

template <class S> void logsumexp(const S* x, S* y, const detail::ReduceDims& dims) {
    const std::size_t size = dims.reduced * dims.inner;
    if (dims.reduced == 0) std::fill_n(y, dims.outer * dims.inner, -std::numeric_limits<S>::infinity());
    for (std::size_t o = 0; size && o < dims.outer; ++o, x += size, y += dims.inner) {
        if (dims.inner == 1) {
            const S shift = FiniteShift()(largest(x, dims.reduced));
            *y = log(sum_run(S(0), dims.reduced, 0, exp_less, Contiguous<S>{x}, Broadcast<S>(shift))) + shift;
            continue;
        }
        for_column_tiles(dims.inner, [&](std::size_t i, std::size_t width) {
            alignas(line) S shift[strip], total[strip];
            largest_of_columns(x + i, dims.reduced, dims.inner, width, shift);
            simd_for_each<Write::set>(width, strip, shift, FiniteShift(), Contiguous<S>{shift});
            std::fill_n(total, width, S(0));
            for (std::size_t r = 0; r < dims.reduced; ++r)
                simd_for_each<Write::add>(width, width, total, exp_less,
                                          Contiguous<S>{x + r * dims.inner + i}, Contiguous<S>{shift});
            simd_for_each<Write::set>(width, width, y + i, log_plus, Contiguous<S>{total},
                                      Contiguous<S>{shift});
        });
    }
}

template <class S>
void logsumexp_back(const S* dy, const S* x, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    for (std::size_t o = 0; o < dims.outer; ++o, dy += dims.inner, y += dims.inner) {
        const std::size_t rows = dims.inner == 1 ? 1 : dims.reduced,
                          width = dims.inner == 1 ? dims.reduced : dims.inner;
        for (std::size_t r = 0; r < rows; ++r, x += width, dx.dst += width) {
            if (dims.inner == 1)
                simd_for_each(width, dx, logsumexp_slope, Contiguous<S>{x}, Broadcast<S>(*dy),
                              Broadcast<S>(*y));
            else
                simd_for_each(width, dx, logsumexp_slope, Contiguous<S>{x}, Contiguous<S>{dy},
                              Contiguous<S>{y});
        }
    }
}

}  // namespace

template <class S> SoftmaxRow<S> softmax_row(const S* x, S* y, std::size_t n) {
    const S m = largest(x, n);
    const S total = sum_in_lanes<S>(n, Identity(), Exps<S>{x, y, Batch<S>(m)});
    simd_for_each<Write::set>(n, n, y, times, Contiguous<S>{y}, Broadcast<S>(S(1) / total));
    return {m, log(total)};
}

template SoftmaxRow<float> softmax_row(const float*, float*, std::size_t);
template SoftmaxRow<double> softmax_row(const double*, double*, std::size_t);

template <class S> void install_softmax(Kernels<S>& t) {
    t.softmax = softmax<S>;
    t.softmax_back = softmax_back<S>;
    t.log_softmax = log_softmax<S>;
    t.log_softmax_back = log_softmax_back<S>;
    t.logsumexp = logsumexp<S>;
    t.logsumexp_back = logsumexp_back<S>;
}

template void install_softmax(Kernels<float>&);
template void install_softmax(Kernels<double>&);

}  // namespace tally::cpu
