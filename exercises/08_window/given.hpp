// Declares what exercise window provides.
#pragma once
#include "exercise.hpp"

using tally::sgd_step;
using tally::Tensor;

// Not an inline namespace: with one, a call of add() in check.cpp could mean the add() of the learner.
namespace exercise_window {

enum class Reduction { sum, mean };

struct Window {
    Tensor w;
    double rate;
    Reduction reduction;
    int rows = 0;  // the rows that this window has accumulated
};

// Returns the loss of each row: the squared error of a linear model.
inline Tensor row_losses(const Tensor& x, const Tensor& target, const Tensor& w) {
    const Tensor error = matmul(x, w) - target;
    return error * error;
}

}  // namespace exercise_window

using exercise_window::Reduction;
using exercise_window::row_losses;
using exercise_window::Window;

void begin(Window& window);
void add(Window& window, const Tensor& x, const Tensor& target);
void finish(Window& window);
int epoch(Window& window, const Tensor& x, const Tensor& target, int micro_rows, int micros);
HAND_IN(begin);
HAND_IN(add);
HAND_IN(finish);
HAND_IN(epoch);
