// Computes running sums and products, and the index of the largest element, by plain loops along an axis.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tally/cpu/reference_walks.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::reference {

// For each result, calls run() with the index of the first element, the step, and the index of the result.
template <class Contiguous> void each_run(const detail::ReduceDims& dims, Contiguous run) {
    for (std::size_t o = 0; o < dims.outer; ++o)
        for (std::size_t i = 0; i < dims.inner; ++i)
            run(o * dims.reduced * dims.inner + i, dims.inner, o * dims.inner + i);
}

template <class S> void cumsum(const S* x, Into<S[]> y, const detail::ReduceDims& dims, bool from_the_end) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t) {
        S total = -S(0);
        for (std::size_t r = 0; r < dims.reduced; ++r) {
            const std::size_t at = first + (from_the_end ? dims.reduced - 1 - r : r) * step;
            total += x[at];
            store(y, at, total);
        }
    });
}

template <class S> void prod(const S* x, S* y, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t at) {
        y[at] = S(1);
        for (std::size_t r = 0; r < dims.reduced; ++r) y[at] *= x[first + r * step];
    });
}

template <class S> void prod_back(const S* dy, const S* x, S* dx, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t at) {
        S before = S(1), after = dy[at];
        for (std::size_t r = 0; r < dims.reduced; ++r) {
            dx[first + r * step] = before;
            before *= x[first + r * step];
        }
        for (std::size_t r = dims.reduced; r-- > 0;) {
            dx[first + r * step] *= after;
            after *= x[first + r * step];
        }
    });
}

template <class S> void argmax(const S* x, std::int32_t* y, const detail::ReduceDims& dims) {
    each_run(dims, [&](std::size_t first, std::size_t step, std::size_t at) {
        std::size_t best = 0;
        for (std::size_t r = 1; r < dims.reduced; ++r) {
            const S top = x[first + best * step], next = x[first + r * step];
            if (top == top && (next > top || next != next)) best = r;
        }
        y[at] = static_cast<std::int32_t>(best);
    });
}

}  // namespace tally::reference
