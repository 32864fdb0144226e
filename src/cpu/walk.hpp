// each_row() iterates over a StridedIndex row by row. The caller must loop over the elements of each row.
#pragma once

#include <array>
#include <cstddef>

#include "tally/kernels/kernels.hpp"

namespace tally::cpu {

template <int Operands> std::size_t row_length(const StridedIndex<Operands>& walk) {
    return walk.rank ? walk.extent[static_cast<std::size_t>(walk.rank - 1)] : 1;
}

template <int Operands> std::ptrdiff_t row_step(const StridedIndex<Operands>& walk, std::size_t operand) {
    return walk.rank ? walk.stride[operand][static_cast<std::size_t>(walk.rank - 1)] : 1;
}

// Calls visit(i, at) for the first element i of each row, with the offset `at` of each operand.
template <int Operands, class Visit> void each_row(const StridedIndex<Operands>& walk, Visit visit) {
    if (walk.size == 0) return;
    const std::size_t length = row_length(walk);
    std::array<std::size_t, max_rank> index;
    for (int axis = 0; axis < walk.rank - 1; ++axis) index[static_cast<std::size_t>(axis)] = 0;
    std::array<std::ptrdiff_t, Operands> at{};
    for (std::size_t i = 0;;) {
        visit(i, at);
        i += length;
        if (i >= walk.size) return;
        for (int axis = walk.rank - 2; axis >= 0; --axis) {
            const auto a = static_cast<std::size_t>(axis);
            for (std::size_t o = 0; o < Operands; ++o) at[o] += walk.stride[o][a];
            if (++index[a] < walk.extent[a]) break;
            for (std::size_t o = 0; o < Operands; ++o)
                at[o] -= walk.stride[o][a] * static_cast<std::ptrdiff_t>(index[a]);
            index[a] = 0;
        }
    }
}

// Returns the number of distinct elements of the operand, without broadcast copies.
template <int Operands> std::size_t places(const StridedIndex<Operands>& walk, std::size_t operand) {
    std::size_t n = walk.size ? 1 : 0;
    for (std::size_t axis = 0; n && axis < static_cast<std::size_t>(walk.rank); ++axis)
        if (walk.stride[operand][axis] != 0) n *= walk.extent[axis];
    return n;
}

// Returns whether the operand is contiguous, so that its elements are read in order.
template <int Operands> bool in_order(const StridedIndex<Operands>& walk, std::size_t operand) {
    std::ptrdiff_t step = 1;
    for (auto axis = static_cast<std::size_t>(walk.rank); axis-- > 0;) {
        if (walk.stride[operand][axis] != step) return false;
        step *= static_cast<std::ptrdiff_t>(walk.extent[axis]);
    }
    return true;
}

}  // namespace tally::cpu
