// Functions that measure and clip the gradients of all parameters together.
//
// Each call reads all gradients in one launch and makes the host wait once. Parameters without a gradient are
// skipped. Sums are computed in double, always in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"

namespace tally {

// Returns the root of the sum of all squares, or 0 if no parameter has a gradient.
template <class S> double grad_norm(const std::vector<Var<Array<S>>>& parameters);

namespace detail {
// Returns the number of elements of the gradients that are infinite or NaN.
template <class S> std::int64_t count_non_finite(const std::vector<Var<Array<S>>>& parameters);

// Norm and number of non-finite elements, measured in one pass over the gradients.
struct MeasuredGradients {
    double norm = 0;
    std::int64_t non_finite = 0;
};
template <class S>
MeasuredGradients measure_gradients(const std::vector<Var<Array<S>>>& parameters, bool norm = true);
// Clips gradients whose norm has been measured.
template <class S>
void clip_measured(const std::vector<Var<Array<S>>>& parameters, double norm, double max_norm);

// NonFiniteNorm decides what clip_grad_norm() does with an infinite or NaN norm. With `pass` it multiplies
// the gradients by the resulting NaN or 0, as PyTorch does.
enum class NonFiniteNorm { pass, raise };
}  // namespace detail

// Multiplies all gradients by max_norm / (norm + 1e-6) if this factor is below 1. Returns the previous norm.
template <class S> double clip_grad_norm(const std::vector<Var<Array<S>>>& parameters, double max_norm,
                                         detail::NonFiniteNorm non_finite = detail::NonFiniteNorm::pass);

// Clamps every element to [-limit, limit]; NaN stays NaN.
template <class S> void clip_grad_value(const std::vector<Var<Array<S>>>& parameters, double limit);

}  // namespace tally
