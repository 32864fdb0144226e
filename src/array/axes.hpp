// Which axes an operation works along: reductions folded to (outer, reduced, inner), permutations and
// slices as walks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tally/array/op_options.hpp"
#include "tally/array/shape.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally {

template <class S> class Array;

namespace detail {
struct ReductionPlan {
    ReduceAxes fold;
    Shape shape;  // of the result
    Axes order;  // how to permute first, so that the reduced axes are neighbours; empty when they are already
};

// No axes means all of them.
ReductionPlan reduction(const char* op, const Shape& shape, const Axes& axes, bool keepdims);

// An Error where there is nothing to choose from.
void expect_elements(const char* op, const ReductionPlan& plan, const Shape& shape);

ReduceAxes fold_around(const char* op, const Shape& shape, std::int64_t axis);

// A shape with one more axis of extent 1, which gets the number `axis`; and without those of extent 1, all of
// them or the one named.
Shape unsqueezed(const char* op, const Shape& shape, std::int64_t axis);
Shape squeezed(const Shape& shape, const Axes& axes);

Shape permuted(const Shape& shape, const Axes& order);
Axes checked_order(const char* op, const Shape& shape, const Axes& order);
StridedIndex<1> permuted_walk(const Shape& shape, const Axes& order);

// How operands are read while an output of shape `out` is written; neighbouring axes merged.
StridedIndex<1> broadcast_walk(const Shape& out, const Shape& x);
StridedIndex<2> broadcast_walk(const Shape& out, const Shape& a, const Shape& b);
StridedIndex<3> walk(const Shape& out, const Shape& a, const Shape& b, const Shape& c);

// What is added to a variance: a finite number, at least 0.
void check_eps(const char* op, double eps, const Shape& x);

// The extents with a -1 replaced by whatever is left.
Shape completed(const char* op, const Shape& shape, const Axes& extents);

Shape with_extent(const Shape& shape, int axis, std::int64_t extent);
std::size_t stride_of(const Shape& shape, int axis);  // elements from one index of the axis to the next

// A range of one axis, as blocks of memory: `count` blocks of `width` neighbours, one every `pitch`.
struct Blocks {
    std::size_t count, width, pitch, start;
    Blocks(const Shape& whole, int axis, std::int64_t from, std::int64_t to)
        : count(1),
          width(static_cast<std::size_t>(to - from) * stride_of(whole, axis)),
          pitch(static_cast<std::size_t>(whole[axis]) * stride_of(whole, axis)),
          start(static_cast<std::size_t>(from) * stride_of(whole, axis)) {
        for (int a = 0; a < axis; ++a) count *= static_cast<std::size_t>(whole[a]);
    }
};

// An Error when an index is not a row of `whole`. They are given on the CPU, where looking at them
// makes nobody wait.
void check_rows(const char* op, const Array<std::int32_t>& index, const Shape& whole);

// rows(x, index) reads these rows, and x[i] this one. A negative row counts from the end.
Array<std::int32_t> picked(Array<std::int32_t> index, const Shape& whole);
std::int64_t checked_row(const char* op, const Shape& whole, std::int64_t i);
}  // namespace detail

}  // namespace tally
