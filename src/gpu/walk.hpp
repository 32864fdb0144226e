// Computes offsets of elements for GPU threads, and finds the terms of each gradient element.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tally/gpu/host_device.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

template <int Operands> using Places = std::array<std::ptrdiff_t, static_cast<std::size_t>(Operands)>;

// Divides 32-bit numbers if possible, because 64-bit divisions are many times slower on a GPU.
TALLY_HOST_DEVICE constexpr std::size_t divided(std::size_t i, std::size_t by) {
    return i <= 0xFFFFFFFFu && by <= 0xFFFFFFFFu
               ? static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(by)
               : i / by;
}

template <int Operands> TALLY_HOST_DEVICE constexpr void step(Places<Operands>& at,
                                                              const StridedIndex<Operands>& walk,
                                                              std::size_t axis, std::size_t by) {
    for (std::size_t o = 0; o < Operands; ++o)
        at[o] += walk.stride[o][axis] * static_cast<std::ptrdiff_t>(by);
}

// Returns the offset of element i in each operand.
template <int Operands>
TALLY_HOST_DEVICE constexpr Places<Operands> places_at(const StridedIndex<Operands>& walk, std::size_t i) {
    Places<Operands> at{};
    TALLY_DO_NOT_UNROLL
    for (auto axis = static_cast<std::size_t>(walk.rank); axis-- > 0;) {
        if (axis == 0) {
            step(at, walk, axis, i);
            continue;
        }
        const std::size_t above = divided(i, walk.extent[axis]);
        step(at, walk, axis, i - above * walk.extent[axis]);
        i = above;
    }
    return at;
}

// A `ReductionWalk` divides the axes of a `StridedIndex` into two lists. Along `moves`, different indices
// address different elements of the operand. Along `repeats`, the operand is broadcast and terms are summed.
// The offset of the last operand is the index of the element.
template <int Operands> struct ReductionWalk {
    StridedIndex<Operands + 1> moves;    // the operand's largest stride first
    StridedIndex<Operands + 1> repeats;  // in the walk's order
    std::size_t operand;

    // Returns whether element `place` has a term, and sets `at` to the offsets of its first term.
    TALLY_HOST_DEVICE constexpr bool first_at(std::size_t place, Places<Operands + 1>& at) const {
        at = {};
        for (std::size_t axis = 0; axis < static_cast<std::size_t>(moves.rank); ++axis) {
            const auto pitch = static_cast<std::size_t>(moves.stride[operand][axis]);
            const std::size_t index = place / pitch;
            if (index >= moves.extent[axis]) return false;
            step(at, moves, axis, index);
            place -= index * pitch;
        }
        return place == 0;
    }

    TALLY_HOST_DEVICE constexpr Places<Operands + 1> term_at(const Places<Operands + 1>& first,
                                                             std::size_t term) const {
        Places<Operands + 1> at = places_at(repeats, term);
        for (std::size_t o = 0; o <= Operands; ++o) at[o] += first[o];
        return at;
    }
};

template <int Operands>
ReductionWalk<Operands> reduction_walk(const StridedIndex<Operands>& walk, std::size_t operand) {
    ReductionWalk<Operands> made{{}, {}, operand};
    std::array<std::size_t, max_rank> after{};  // elements per step along the axis
    std::size_t product = 1;
    for (auto axis = static_cast<std::size_t>(walk.rank); axis-- > 0; product *= walk.extent[axis])
        after[axis] = product;
    const auto take = [&](StridedIndex<Operands + 1>& into, std::size_t axis) {
        const auto last = static_cast<std::size_t>(into.rank++);
        into.extent[last] = walk.extent[axis];
        into.size *= walk.extent[axis];
        for (std::size_t o = 0; o < Operands; ++o) into.stride[o][last] = walk.stride[o][axis];
        into.stride[Operands][last] = static_cast<std::ptrdiff_t>(after[axis]);
    };
    std::array<std::size_t, max_rank> moving{};
    std::size_t count = 0;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(walk.rank); ++axis)
        if (walk.stride[operand][axis] == 0)
            take(made.repeats, axis);
        else if (walk.extent[axis] != 1)
            moving[count++] = axis;
    std::stable_sort(
        moving.begin(), moving.begin() + static_cast<std::ptrdiff_t>(count),
        [&](std::size_t a, std::size_t b) { return walk.stride[operand][a] > walk.stride[operand][b]; });
    for (std::size_t i = 0; i < count; ++i) take(made.moves, moving[i]);
    return made;
}

}  // namespace tally::gpu
