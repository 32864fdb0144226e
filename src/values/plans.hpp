// What operations ask of shapes and sizes, where that is more than a comparison.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/kernels/kernels.hpp"
#include "tally/values/axes.hpp"
#include "tally/values/shape.hpp"

namespace tally::detail {

[[noreturn]] void fail_loss_shapes(const char* op, const Shape& prediction, const Shape& target);
[[noreturn]] void fail_labels(const Shape& logits, const Shape& labels);

// Of a dropout with probability p: x (items, ...), the first of which has this number.
void check_mask(double p, std::uint64_t first, const Shape& x);

// Of layer norm: x as (rows, width, 1).
Fold plan_rows(const Shape& x, const Shape& gain, const Shape& bias, double eps);

// The parts must be the rows of x.
void check_split(const Shape& x, const std::vector<std::int64_t>& sizes);

}  // namespace tally::detail
