// The two gradients of a matrix product.
//
// y = a b, where a is m x k, b is k x n, and so y is m x n. Backward is given dy, which is m x n like y, and owes each
// operand a gradient of that operand's shape. Both are products again. You have product(p, q) and transposed(p); the
// shapes alone leave little choice, but for square matrices they leave too much: think of one number,
//
//     y[i][j] = sum over l of  a[i][l] * b[l][j]
//
// and ask how y[i][j] moves when a[i][l] does.
#include "given.hpp"

Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy) {
    Matrix da = a;  // not yet
    Matrix db = b;  // not yet
    todo();
    return {da, db};
}
