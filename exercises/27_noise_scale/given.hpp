// Declares what exercise noise-scale provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_noise_scale {

struct Norms {
    double first, whole;  // |g|^2 of the mean over the first micro-batch, and of the mean over the window
};

}  // namespace exercise_noise_scale

// Returns the noise scale tr / |G|^2, estimated from windows of n micro-batches of b items each. In a mean over
// so many items, the noise is as long as the gradient.
double noise_scale(const std::vector<Norms>& windows, int b, int n);
HAND_IN(noise_scale);
