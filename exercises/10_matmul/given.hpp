// Declares what exercise matmul provides.
#pragma once
#include "matrix.hpp"  // Matrix, product(a, b), transposed(a)

inline namespace exercise_matmul {

struct Gradients {
    Matrix a, b;
};

}  // namespace exercise_matmul

// Returns the gradients of a and b, where y = product(a, b) and dy is the gradient of y.
Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy);
HAND_IN(matmul_backward);
