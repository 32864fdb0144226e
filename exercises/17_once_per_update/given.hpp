// Declares what exercise once-per-update provides.
#pragma once
#include "exercise.hpp"

using Numbers = std::vector<double>;

inline namespace exercise_once_per_update {

struct State {
    Numbers w, v;  // the weights and their momentum
};
struct Options {
    double rate, momentum, decay, max_norm;
};

inline double norm(const Numbers& g) {
    return std::sqrt(std::inner_product(g.begin(), g.end(), g.begin(), 0.0));
}

}  // namespace exercise_once_per_update

// Makes one update from the mean gradients of N equal micro-batches: mean, penalty, clip, momentum, step.
void update(State& state, const std::vector<Numbers>& micros, const Options& options);
HAND_IN(update);
