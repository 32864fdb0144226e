// Exercise 27, the noise scale: what is given.
#pragma once
#include "exercise.hpp"

inline namespace exercise_27 {

struct Norms {
    double first, whole;  // |g|^2 of its first micro-batch's mean, and of the mean over all of it
};

}  // namespace exercise_27

// The number of items at which a mean gradient's noise is as long as the gradient: tr / |G|^2, from windows of n
// micro-batches of b items each.
double noise_scale(const std::vector<Norms>& windows, int b, int n);
HAND_IN(noise_scale);
