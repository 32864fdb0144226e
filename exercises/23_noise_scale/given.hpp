// Declares what exercise noise-scale provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_noise_scale {

struct Norms {
    double first, whole;  // |g|^2 of the mean over the first micro-batch, and over the whole window
};

}  // namespace exercise_noise_scale

// Returns the number of items at which a mean gradient's noise is as long as the gradient, tr / |G|^2, from
// windows of n micro-batches of b items each.
double noise_scale(const std::vector<Norms>& windows, int b, int n);
HAND_IN(noise_scale);
