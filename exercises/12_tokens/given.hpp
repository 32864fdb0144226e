// Declares what exercise tokens provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_tokens {

struct Row {
    std::vector<double> gradients;  // one for each place of the row, also for the padding at its end
    std::vector<int> mask;          // 1: a token that counts; 0: padding, or a token that is not predicted
};
using Micro = std::vector<Row>;

}  // namespace exercise_tokens

// Returns the gradient of the mean over all tokens that count, in all micro-batches; 0 if there are none.
double gradient(const std::vector<Micro>& micros);
HAND_IN(gradient);
