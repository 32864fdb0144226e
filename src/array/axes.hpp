// Plans operations along axes, such as reductions, permutations, broadcasts and copies of blocks.
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
    // The products of the extents before, along and after the reduced axes of x, or of x permuted by `order`.
    ReduceDims dims;
    Shape shape;  // of the result
    Axes order;   // permutes x so that the reduced axes are adjacent; empty if they already are
};

ReductionPlan plan_reduction_along(const char* op, const Shape& shape, const Axes& axes, bool keepdims);
// Plans a reduction over `axes`, or over all axes if `axes` is empty.
inline ReductionPlan plan_reduction(const char* op, const Shape& shape, const Axes& axes, bool keepdims) {
    if (!axes.empty() || keepdims) [[unlikely]]
        return plan_reduction_along(op, shape, axes, keepdims);
    return {{1, shape.size(), 1, shape.size() <= longest_sequential_sum}, {}, {}};
}

// Throws Error if a result would be the largest element of an empty set.
void require_nonempty_reduction(const char* op, const ReductionPlan& plan, const Shape& shape);

// Returns the extent of the axis, and the products of the extents before and after the axis.
ReduceDims split_at_axis(const char* op, const Shape& shape, std::int64_t axis);

// Inserts an axis of extent 1 at the position `axis`.
Shape unsqueezed(const char* op, const Shape& shape, std::int64_t axis);
// Removes `axes`, which must have extent 1. If `axes` is empty, removes all axes of extent 1.
Shape squeezed(const Shape& shape, const Axes& axes);

Shape permuted(const Shape& shape, const Axes& order);
Axes checked_order(const char* op, const Shape& shape, const Axes& order);
StridedIndex<1> permuted_index(const Shape& shape, const Axes& order);  // for gather() from x

// Returns the strides of the operands for an output of shape `out`. Adjacent axes are merged where possible.
StridedIndex<1> broadcast_index(const Shape& out, const Shape& x);
StridedIndex<2> broadcast_index(const Shape& out, const Shape& a, const Shape& b);
StridedIndex<3> broadcast_index(const Shape& out, const Shape& a, const Shape& b, const Shape& c);

// Throws Error unless eps, which is added to a variance, is finite and at least 0.
void require_valid_eps(const char* op, double eps, const Shape& x);

// Returns the shape with `extents`. Replaces an extent of -1 so that the number of elements does not change.
Shape with_inferred_extent(const char* op, const Shape& shape, const Extents& extents);

Shape with_extent(const Shape& shape, int axis, std::int64_t extent);
std::size_t stride_of(const Shape& shape, int axis);  // elements from one index of the axis to the next

// Describes [from, to) of one axis as `count` blocks of `width` elements, which begin `pitch` elements apart.
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

// Throws Error if an index is not a row of `whole`, or if the indices are not on the CPU. For indices on a
// GPU, the check would wait for the GPU.
void require_valid_rows(const char* op, const Array<std::int32_t>& index, const Shape& whole);

// rows_from_front() and checked_row() replace each negative index, which counts from the end, by the index
// from the front. Both functions throw Error if a row does not exist.
Array<std::int32_t> rows_from_front(Array<std::int32_t> index, const Shape& whole);
std::int64_t checked_row(const char* op, const Shape& whole, std::int64_t i);
}  // namespace detail

}  // namespace tally
