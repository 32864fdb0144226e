// Declares what exercise tokens provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_tokens {

struct Row {
    std::vector<double> gradients;  // one number for each place of the row, also for the padding
    std::vector<int> mask;  // 1 if the token counts; 0 for padding and for tokens that are not predicted
};
using Micro = std::vector<Row>;

}  // namespace exercise_tokens

// Returns the gradient of the mean over all tokens that count, in all micro-batches, or 0 if no token counts.
double gradient(const std::vector<Micro>& micros);
HAND_IN(gradient);
