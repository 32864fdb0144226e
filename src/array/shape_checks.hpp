// These functions check the arguments of operations, and throw Error. Some functions also return a plan.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/array/axes.hpp"
#include "tally/array/shape.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

[[noreturn]] void fail_clamp_bounds(double low, double high);
[[noreturn]] void fail_slice_range(std::int64_t from, std::int64_t to, int axis, const Shape& x);
[[noreturn]] void fail_loss_shapes(const char* op, const Shape& prediction, const Shape& target);
void require_cross_entropy_args(const Shape& logits, const Shape& labels, double smoothing);
void require_info_nce_args(const Shape& queries, const Shape& keys, double temperature);

// Checks the arguments of dropout for x (items, ...). `first` is the index of the first item.
void require_dropout_args(double p, std::uint64_t first, const Shape& x);

// Checks a layer norm, and returns the extents of x as (rows, width, 1).
ReduceDims plan_layer_norm(const Shape& x, const Shape& gain, const Shape& bias, double eps);

template <class Part> std::vector<Shape> shapes_of(const std::vector<Part>& parts) {
    std::vector<Shape> shapes;
    for (const Part& part : parts) shapes.push_back(part.shape());
    return shapes;
}

struct ConcatPlan {
    int axis;     // counted from the front
    Shape shape;  // of the result
};
ConcatPlan plan_concat(const std::vector<Shape>& parts, std::int64_t axis);
// Returns the shape of each part with the new axis.
Shape plan_stack(const std::vector<Shape>& parts, std::int64_t axis);

// Throws Error unless the sum of the sizes is the number of rows of x.
void require_valid_split(const Shape& x, const std::vector<std::int64_t>& sizes);
void require_valid_split(const Shape& x, std::int64_t size);  // parts of `size` rows; the last may be smaller

}  // namespace tally::detail
