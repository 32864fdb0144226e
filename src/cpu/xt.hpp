// The one door to xtensor and xtensor-blas: their headers, wherever this version keeps them, and views
// of our memory.
#pragma once

#include <array>
#include <cstddef>

#if __has_include(<xtensor/containers/xadapt.hpp>)  // 0.26 and later
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/containers/xtensor.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>
#endif
#include <xtensor-blas/xblas.hpp>

#include "tally/kernels/into.hpp"

namespace tally::cpu {

// Fixed rank and row-major: what xtensor assigns at the speed of a loop, without allocating.
template <class S> auto vector_view(S* p, std::size_t n) {
    return xt::adapt(p, n, xt::no_ownership(), std::array<std::size_t, 1>{n});
}

template <class S> auto matrix_view(S* p, std::size_t rows, std::size_t columns) {
    return xt::adapt(p, rows * columns, xt::no_ownership(), std::array<std::size_t, 2>{rows, columns});
}

// dst (+)= expression, of equal shape: `how` decides between the two assignments that need no temporary.
template <class S, class Expression>
void assign(Into<S[]> into, std::size_t n, const Expression& expression) {
    auto dst = vector_view(into.dst, n);
    if (into.how == Write::set)
        xt::noalias(dst) = expression;
    else
        xt::noalias(dst) += expression;
}

}  // namespace tally::cpu
