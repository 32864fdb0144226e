// Declares what exercise dice provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_dice {

struct Micro {
    std::vector<double> p, t;  // the prediction and the truth of each pixel
};

}  // namespace exercise_dice

// Returns d loss / d p for each pixel, micro-batch after micro-batch, where the loss is that of ALL pixels:
//     loss = 1 - 2 I / D,    I = sum of p * t,    D = sum of (p + t)
std::vector<double> dice_gradients(const std::vector<Micro>& micros);
HAND_IN(dice_gradients);
