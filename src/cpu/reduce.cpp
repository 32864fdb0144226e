// Implements `sum`, `spread` and `max`. Contiguous elements are reduced in SIMD lanes, all others row by row.
#include <algorithm>

#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/reference_runs.hpp"
#include "tally/cpu/simd_loops.hpp"

namespace tally::cpu {

namespace {

// Sums more than `longest_sequential_sum` rows. Recursively adds the sums of two halves of the rows.
template <class S> void sum_many_rows(const S* x, Into<S[]> y, const detail::ReduceDims& dims) {
    for_column_tiles<wide_strip>(dims.inner, [&](std::size_t i, std::size_t width) {
        alignas(line) S total[wide_strip];
        sum_in_halves(0, dims.reduced, width, total, [&](std::size_t first, std::size_t rows, S* part) {
            sum_rows(x + first * dims.inner + i, dims.inner, {part, Write::set}, rows, width, Identity());
        });
        simd_for_each(width, from(y, i), Identity(), Contiguous<S>{total});
    });
}

template <class S> void sum(const S* x, Into<S[]> y, const detail::ReduceDims& dims) {
    const bool ordered = sums_in_order(dims);
    if (dims.inner != 1 && !ordered) {
        for (std::size_t o = 0; o < dims.outer; ++o)
            sum_many_rows(x + o * dims.reduced * dims.inner, from(y, o * dims.inner), dims);
        return;
    }
    if (dims.inner != 1) {
        for (std::size_t o = 0; o < dims.outer; ++o)
            sum_rows(x + o * dims.reduced * dims.inner, {y.dst + o * dims.inner, y.how}, dims.reduced,
                     dims.inner, Identity());
        return;
    }
    for (std::size_t o = 0; o < dims.outer; ++o, x += dims.reduced) {
        const S total = y.how == Write::set ? sum_identity<S>(dims.reduced) : y.dst[o];
        y.dst[o] = ordered ? sum_in_order(total, x, dims.reduced) : total + sum_in_lanes(x, dims.reduced);
    }
}

template <class S> void mean(const S* x, S* y, const detail::ReduceDims& dims) {
    sum(x, {y, Write::set}, dims);
    const std::size_t n = dims.outer * dims.inner;
    const S count = static_cast<S>(static_cast<double>(dims.reduced));
    if (n == 1)  // loading a batch right after storing one number would stall
        *y /= count;
    else
        simd_for_each<Write::set>(
            n, n, y, [d = Batch<S>(count)](auto v) { return v / d; }, Contiguous<S>{y});
}

template <class S> void spread(const S* dy, S divisor, Into<S[]> dx, const detail::ReduceDims& dims) {
    const auto divided = [d = Batch<S>(divisor)](auto v) { return v / d; };
    for (std::size_t o = 0; o < dims.outer; ++o) {
        const Into<S[]> to = from(dx, o * dims.reduced * dims.inner);
        if (dims.inner == 1) {
            simd_for_each(dims.reduced, to, Identity(), Broadcast<S>(dy[o] / divisor));
            continue;
        }
        for (std::size_t r = 0; r < dims.reduced; ++r) {
            const Contiguous<S> row{dy + o * dims.inner};
            if (divisor == S(1))
                simd_for_each(dims.inner, from(to, r * dims.inner), Identity(), row);
            else
                simd_for_each(dims.inner, from(to, r * dims.inner), divided, row);
        }
    }
}

template <class S> void max(const S* x, S* y, const detail::ReduceDims& dims) {
    for (std::size_t o = 0; o < dims.outer; ++o, x += dims.reduced * dims.inner, y += dims.inner) {
        if (dims.inner == 1) {
            *y = largest(x, dims.reduced);
            continue;
        }
        std::copy_n(x, dims.inner, y);
        for (std::size_t r = 1; r < dims.reduced; ++r)
            simd_for_each<Write::set>(dims.inner, dims.inner, y, Larger(), Contiguous<S>{y},
                                      Contiguous<S>{x + r * dims.inner});
    }
}

// Follows PyTorch's formula. If y is NaN, no element equals y, so all gradients are 0 / 0 = NaN.
template <class S>
void max_back(const S* dy, const S* x, const S* y, Into<S[]> dx, const detail::ReduceDims& dims) {
    const auto is_largest = [](auto v, auto m) {
        return select(v == m, decltype(v)(S(1)), decltype(v)(S(0)));
    };
    const auto share = [](auto v, auto m, auto d, auto ties) {
        return select(v == m, d, decltype(v)(S(0))) / ties;
    };
    for (std::size_t o = 0; o < dims.outer;
         ++o, x += dims.reduced * dims.inner, dx.dst += dims.reduced * dims.inner) {
        if (dims.inner == 1) {
            const Broadcast<S> m(y[o]), ties(sum_run(S(0), dims.reduced, 0, is_largest, Contiguous<S>{x}, m));
            simd_for_each(dims.reduced, dx, share, Contiguous<S>{x}, m, Broadcast<S>(dy[o]), ties);
            continue;
        }
        for_column_tiles(dims.inner, [&](std::size_t i, std::size_t width) {
            alignas(line) S ties[strip];
            const Contiguous<S> m{y + o * dims.inner + i}, d{dy + o * dims.inner + i};
            std::fill_n(ties, width, S(0));
            for (std::size_t r = 0; r < dims.reduced; ++r)
                simd_for_each<Write::add>(width, width, ties, is_largest,
                                          Contiguous<S>{x + r * dims.inner + i}, m);
            for (std::size_t r = 0; r < dims.reduced; ++r)
                simd_for_each(width, from(dx, r * dims.inner + i), share,
                              Contiguous<S>{x + r * dims.inner + i}, m, d, Contiguous<S>{ties});
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
