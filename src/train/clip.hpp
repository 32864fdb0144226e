// These functions compute the norm of the gradients of all parameters together, and clip the gradients.
//
// Each call reads all gradients in one kernel launch, and makes the host wait one time. Parameters without a
// gradient are skipped. Sums are computed in double, always in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"

namespace tally {

namespace detail {
// Returns the Euclidean norm of all gradients together, or 0 if no parameter has a gradient.
template <class S> double grad_norm(const std::vector<Var<Array<S>>>& parameters);

// Returns how many elements of the gradients are infinite or NaN.
template <class S> std::int64_t count_non_finite(const std::vector<Var<Array<S>>>& parameters);

// Stores the norm of the gradients, and the number of gradient elements that are infinite or NaN.
struct MeasuredGradients {
    double norm = 0;
    std::int64_t non_finite = 0;
};
template <class S>
MeasuredGradients measure_gradients(const std::vector<Var<Array<S>>>& parameters, bool norm = true);
// Clips gradients by the norm that measure_gradients() has returned.
template <class S>
void clip_measured(const std::vector<Var<Array<S>>>& parameters, double norm, double max_norm);
}  // namespace detail

// Multiplies all gradients by max_norm / (norm + 1e-6) if this factor is below 1. Returns the norm before
// clipping. As in PyTorch, if the norm is infinite or NaN, the gradients become 0 or NaN.
template <class S> double clip_grad_norm(const std::vector<Var<Array<S>>>& parameters, double max_norm);

// Clamps every element of the gradients to [-limit, limit]. NaN stays NaN.
template <class S> void clip_grad_value(const std::vector<Var<Array<S>>>& parameters, double limit);

}  // namespace tally
