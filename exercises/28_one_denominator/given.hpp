// Declares what exercise one-denominator provides.
#pragma once
#include "exercise.hpp"

using namespace tally;

inline namespace exercise_one_denominator {

// The numbers that a rank submits. The check adds up both members over all ranks.
struct Share {
    std::vector<double> gradient;
    double count = 0;
};

// Returns w.grad() as numbers, or zeros if no gradient has reached w.
inline std::vector<double> numbers_of_gradient(const Tensor& w) {
    if (!w.has_grad()) return std::vector<double>(w.value().size());
    const std::vector<float> numbers = w.grad().to_vector();
    return {numbers.begin(), numbers.end()};
}

}  // namespace exercise_one_denominator

// Returns the numbers that the rank with these micro-batches submits. It can have none. w has no gradient yet.
Share hand_in(const std::vector<Tensor>& micros, const Tensor& w);
// Returns the gradient of the mean over all rows of all ranks. `sum` is the sum over `ranks` ranks.
std::vector<double> gradient_of_all(const Share& sum, int ranks);
HAND_IN(hand_in);
HAND_IN(gradient_of_all);
