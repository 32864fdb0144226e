// Plain loops along an axis: running sums and products, and the index of the largest element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tally/cpu/reference_walks.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::reference {

// Calls run(first, step, at) with the start of each run of `reduced` elements, their step, and its result.
template <class Contiguous> void each_run(const detail::ReduceAxes& fold, Contiguous run) {
    for (std::size_t o = 0; o < fold.outer; ++o)
        for (std::size_t i = 0; i < fold.inner; ++i)
            run(o * fold.reduced * fold.inner + i, fold.inner, o * fold.inner + i);
}

template <class S> void cumsum(const S* x, Into<S[]> y, const detail::ReduceAxes& fold, bool from_the_end) {
    each_run(fold, [&](std::size_t first, std::size_t step, std::size_t) {
        S total = -S(0);
        for (std::size_t r = 0; r < fold.reduced; ++r) {
            const std::size_t at = first + (from_the_end ? fold.reduced - 1 - r : r) * step;
            total += x[at];
            store(y, at, total);
        }
    });
}

template <class S> void prod(const S* x, S* y, const detail::ReduceAxes& fold) {
    each_run(fold, [&](std::size_t first, std::size_t step, std::size_t at) {
        y[at] = S(1);
        for (std::size_t r = 0; r < fold.reduced; ++r) y[at] *= x[first + r * step];
    });
}

template <class S> void prod_back(const S* dy, const S* x, S* dx, const detail::ReduceAxes& fold) {
    each_run(fold, [&](std::size_t first, std::size_t step, std::size_t at) {
        S before = S(1), after = dy[at];
        for (std::size_t r = 0; r < fold.reduced; ++r) {
            dx[first + r * step] = before;
            before *= x[first + r * step];
        }
        for (std::size_t r = fold.reduced; r-- > 0;) {
            dx[first + r * step] *= after;
            after *= x[first + r * step];
        }
    });
}

template <class S> void argmax(const S* x, std::int32_t* y, const detail::ReduceAxes& fold) {
    each_run(fold, [&](std::size_t first, std::size_t step, std::size_t at) {
        std::size_t best = 0;
        for (std::size_t r = 1; r < fold.reduced; ++r) {
            const S top = x[first + best * step], next = x[first + r * step];
            if (top == top && (next > top || next != next)) best = r;
        }
        y[at] = static_cast<std::int32_t>(best);
    });
}

}  // namespace tally::reference
