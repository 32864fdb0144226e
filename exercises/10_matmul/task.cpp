// Write the two gradients of a matrix product.
//
// Forward computes y = a b. The shapes are m x k for a, k x n for b, and m x n for y. The backward function
// gets a, b and dy. Here, dy is the gradient of y, in the shape of y. Return da, the gradient of a, and db,
// the gradient of b. The shape of da is that of a, and the shape of db is that of b.
//
// Each gradient is a product of two matrices. With square matrices many wrong products have the right
// shape, so look at one number of y = a b:
//
//     y[i][j] = sum over l of  a[i][l] * b[l][j]
//
// Example: a is [1 2] (1 x 2), b is [3; 4] (2 x 1), and dy is [1]. Then da is [3 4], and db is [1; 2].
//
// The question: in y = a b, if the number in row i and column l of a grows by h, by how much does row i of y
// change?
//
// Given:
//     Matrix product(const Matrix& p, const Matrix& q);  // throws if the shapes do not fit
//     Matrix transposed(const Matrix& p);
//     struct Gradients { Matrix a, b; };                 // da and db
#include "given.hpp"

Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy) { todo(); }
