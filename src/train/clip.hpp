// Gradients as a whole: how long they are together, whether all are numbers, and how they are shortened.
//
// Each call looks at all gradients in one launch and makes the host wait once. Parameters that no gradient
// has reached are passed over. What is summed is summed in double, always in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"

namespace tally {

// The root of the sum of all squares; 0 where there is no gradient.
template <class S> double grad_norm(const std::vector<Var<Array<S>>>& parameters);

namespace detail {
// How many elements of the gradients are infinite or NaN.
template <class S> std::int64_t count_non_finite(const std::vector<Var<Array<S>>>& parameters);

// Both of these by one look at the gradients.
struct MeasuredGradients {
    double norm = 0;
    std::int64_t non_finite = 0;
};
template <class S>
MeasuredGradients measure_gradients(const std::vector<Var<Array<S>>>& parameters, bool norm = true);
// What clip_grad_norm does when it has measured.
template <class S>
void clip_measured(const std::vector<Var<Array<S>>>& parameters, double norm, double max_norm);
}  // namespace detail

// What a norm that is no number does: PyTorch lets NaN and 0 pass into the gradients.
enum class NonFiniteNorm { pass, raise };

// Multiplies all gradients by max_norm / (norm + 1e-6), if that is below 1; returns the norm before.
template <class S> double clip_grad_norm(const std::vector<Var<Array<S>>>& parameters, double max_norm,
                                         NonFiniteNorm non_finite = NonFiniteNorm::pass);

// Brings every element into [-limit, limit]; NaN stays NaN.
template <class S> void clip_grad_value(const std::vector<Var<Array<S>>>& parameters, double limit);

}  // namespace tally
