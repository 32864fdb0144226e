// Kernels of sum, spread and max: in lanes along contiguous elements, and by adding rows otherwise.
#include <algorithm>

#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/reference_runs.hpp"
#include "tally/cpu/simd_loops.hpp"

namespace tally::cpu {

namespace {

// Sums more than `longest_sequential_sum` rows, in halves.
template <class S> void sum_many_rows(const S* x, Into<S[]> y, const detail::ReduceAxes& fold) {
    for_column_tiles<wide_strip>(fold.inner, [&](std::size_t i, std::size_t width) {
        alignas(line) S total[wide_strip];
        sum_in_halves(0, fold.reduced, width, total, [&](std::size_t first, std::size_t rows, S* part) {
            sum_rows(x + first * fold.inner + i, fold.inner, {part, Write::set}, rows, width, Identity());
        });
        simd_for_each(width, from(y, i), Identity(), Contiguous<S>{total});
    });
}

template <class S> void sum(const S* x, Into<S[]> y, const detail::ReduceAxes& fold) {
    const bool ordered = sums_in_order(fold);
    if (fold.inner != 1 && !ordered) {
        for (std::size_t o = 0; o < fold.outer; ++o)
            sum_many_rows(x + o * fold.reduced * fold.inner, from(y, o * fold.inner), fold);
        return;
    }
    if (fold.inner != 1) {
        for (std::size_t o = 0; o < fold.outer; ++o)
            sum_rows(x + o * fold.reduced * fold.inner, {y.dst + o * fold.inner, y.how}, fold.reduced,
                     fold.inner, Identity());
        return;
    }
    for (std::size_t o = 0; o < fold.outer; ++o, x += fold.reduced) {
        const S total = y.how == Write::set ? sum_identity<S>(fold.reduced) : y.dst[o];
        y.dst[o] = ordered ? sum_in_order(total, x, fold.reduced) : total + sum_in_lanes(x, fold.reduced);
    }
}

template <class S> void mean(const S* x, S* y, const detail::ReduceAxes& fold) {
    sum(x, {y, Write::set}, fold);
    const std::size_t n = fold.outer * fold.inner;
    const S count = static_cast<S>(static_cast<double>(fold.reduced));
    if (n == 1)  // loading a batch right after storing one number would stall
        *y /= count;
    else
        simd_for_each<Write::set>(
            n, n, y, [d = Batch<S>(count)](auto v) { return v / d; }, Contiguous<S>{y});
}

template <class S> void spread(const S* dy, S divisor, Into<S[]> dx, const detail::ReduceAxes& fold) {
    const auto divided = [d = Batch<S>(divisor)](auto v) { return v / d; };
    for (std::size_t o = 0; o < fold.outer; ++o) {
        const Into<S[]> to = from(dx, o * fold.reduced * fold.inner);
        if (fold.inner == 1) {
            simd_for_each(fold.reduced, to, Identity(), Broadcast<S>(dy[o] / divisor));
            continue;
        }
        for (std::size_t r = 0; r < fold.reduced; ++r) {
            const Contiguous<S> row{dy + o * fold.inner};
            if (divisor == S(1))
                simd_for_each(fold.inner, from(to, r * fold.inner), Identity(), row);
            else
                simd_for_each(fold.inner, from(to, r * fold.inner), divided, row);
        }
    }
}

template <class S> void max(const S* x, S* y, const detail::ReduceAxes& fold) {
    for (std::size_t o = 0; o < fold.outer; ++o, x += fold.reduced * fold.inner, y += fold.inner) {
        if (fold.inner == 1) {
            *y = largest(x, fold.reduced);
            continue;
        }
        std::copy_n(x, fold.inner, y);
        for (std::size_t r = 1; r < fold.reduced; ++r)
            simd_for_each<Write::set>(fold.inner, fold.inner, y, Larger(), Contiguous<S>{y},
                                      Contiguous<S>{x + r * fold.inner});
    }
}

// Follows PyTorch's formula: if y is NaN, no element equals y, and all receive 0 / 0.
template <class S>
void max_back(const S* dy, const S* x, const S* y, Into<S[]> dx, const detail::ReduceAxes& fold) {
    const auto is_largest = [](auto v, auto m) {
        return select(v == m, decltype(v)(S(1)), decltype(v)(S(0)));
    };
    const auto share = [](auto v, auto m, auto d, auto ties) {
        return select(v == m, d, decltype(v)(S(0))) / ties;
    };
    for (std::size_t o = 0; o < fold.outer;
         ++o, x += fold.reduced * fold.inner, dx.dst += fold.reduced * fold.inner) {
        if (fold.inner == 1) {
            const Broadcast<S> m(y[o]), ties(sum_run(S(0), fold.reduced, 0, is_largest, Contiguous<S>{x}, m));
            simd_for_each(fold.reduced, dx, share, Contiguous<S>{x}, m, Broadcast<S>(dy[o]), ties);
            continue;
        }
        for_column_tiles(fold.inner, [&](std::size_t i, std::size_t width) {
            alignas(line) S ties[strip];
            const Contiguous<S> m{y + o * fold.inner + i}, d{dy + o * fold.inner + i};
            std::fill_n(ties, width, S(0));
            for (std::size_t r = 0; r < fold.reduced; ++r)
                simd_for_each<Write::add>(width, width, ties, is_largest,
                                          Contiguous<S>{x + r * fold.inner + i}, m);
            for (std::size_t r = 0; r < fold.reduced; ++r)
                simd_for_each(width, from(dx, r * fold.inner + i), share,
                              Contiguous<S>{x + r * fold.inner + i}, m, d, Contiguous<S>{ties});
        });
    }
}

}  // namespace

template <class S> void install_reduce(Kernels<S>& t) {
    t.sum = sum<S>;
    t.mean = mean<S>;
    t.spread = spread<S>;
    t.max = max<S>;
    t.max_back = max_back<S>;
    t.cumsum = reference::cumsum<S>;
    t.prod = reference::prod<S>;
    t.prod_back = reference::prod_back<S>;
    t.argmax = reference::argmax<S>;
}

template void install_reduce(Kernels<float>&);
template void install_reduce(Kernels<double>&);

}  // namespace tally::cpu
