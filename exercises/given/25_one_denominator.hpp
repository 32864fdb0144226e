// Exercise 25, one denominator: what is given.
#pragma once
#include "exercise.hpp"

using namespace tally;

inline namespace exercise_25 {

// What a rank hands in; what each rank gets back is the sum of what all have handed in, number by number.
struct Share {
    std::vector<double> gradient;
    double count = 0;
};

// w.grad() as numbers: zeros, if no gradient has reached w.
inline std::vector<double> numbers_of_gradient(const Tensor& w) {
    if (!w.has_grad()) return std::vector<double>(w.value().size());
    const std::vector<float> numbers = w.grad().to_vector();
    return {numbers.begin(), numbers.end()};
}

}  // namespace exercise_25

// What the rank that has these micro-batches, perhaps none, adds to the sum. Its w has no gradient yet.
Share hand_in(const std::vector<Tensor>& micros, const Tensor& w);
// The gradient of the mean over all rows of all ranks, from the sum of what so many ranks have handed in.
std::vector<double> gradient_of_all(const Share& sum, int ranks);
HAND_IN(hand_in);
HAND_IN(gradient_of_all);
