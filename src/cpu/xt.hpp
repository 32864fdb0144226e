// Includes xtensor and xtensor-blas, whose header paths depend on the version, and defines views of memory.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>

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

// Makes the types of tally's xtensor views unique. Otherwise the linker could mix functions of the library
// with functions that a program compiles without xsimd.
template <class S> struct Ours : std::allocator<S> {};

// Returns a row-major view of fixed rank. An assignment is as fast as a loop and allocates no memory.
template <std::size_t rank, class S>
auto view(S* p, std::size_t n, const std::array<std::size_t, rank>& shape) {
    return xt::adapt(p, n, xt::no_ownership(), shape, xt::layout_type::row_major,
                     Ours<std::remove_const_t<S>>());
}

template <class S> auto vector_view(S* p, std::size_t n) { return view<1>(p, n, {n}); }

template <class S> auto matrix_view(S* p, std::size_t rows, std::size_t columns) {
    return view<2>(p, rows * columns, {rows, columns});
}

// Writes or adds the value of an expression to a destination of the same shape, without a temporary array.
template <class S, class Expression>
void assign(Into<S[]> into, std::size_t n, const Expression& expression) {
    auto dst = vector_view(into.dst, n);
    if (into.how == Write::set)
        xt::noalias(dst) = expression;
    else
        xt::noalias(dst) += expression;
}

}  // namespace tally::cpu
