// What operations ask of shapes and sizes, where that is more than a comparison.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/array/axes.hpp"
#include "tally/array/shape.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

[[noreturn]] void fail_bounds(double low, double high);                                       // of clamp
[[noreturn]] void fail_range(std::int64_t from, std::int64_t to, int along, const Shape& x);  // of slice
[[noreturn]] void fail_loss_shapes(const char* op, const Shape& prediction, const Shape& target);

// Of a cross-entropy, and of one among pairs.
void check_labels(const Shape& logits, const Shape& labels, double smoothing);
void check_pairs(const Shape& queries, const Shape& keys, double temperature);

// Of a dropout with probability p: x (items, ...), the first of which has this number.
void check_mask(double p, std::uint64_t first, const Shape& x);

// Of layer norm: x as (rows, width, 1).
ReduceAxes plan_rows(const Shape& x, const Shape& gain, const Shape& bias, double eps);

template <class Part> std::vector<Shape> shapes_of(const std::vector<Part>& parts) {
    std::vector<Shape> shapes;
    for (const Part& part : parts) shapes.push_back(part.shape());
    return shapes;
}

// Of concat: the axis counted from the front, and the shape of the whole. Of stack: that of each with its new axis.
struct ConcatPlan {
    int along;
    Shape whole;
};
ConcatPlan plan_concat(const std::vector<Shape>& parts, std::int64_t axis);
Shape plan_stack(const std::vector<Shape>& parts, std::int64_t axis);

// The parts must be the rows of x.
void check_split(const Shape& x, const std::vector<std::int64_t>& sizes);
void check_split(const Shape& x, std::int64_t size);

}  // namespace tally::detail
