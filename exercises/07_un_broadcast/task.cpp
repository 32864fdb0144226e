// Un-broadcast.
//
// A bias of shape 1 x 3 is added to a batch of 5 x 3: forward uses each of its numbers five times, once for each row.
// A value that was used five times gets five contributions to its gradient, and they add up.
//
// Write that for any broadcast of a matrix: 1 x c, r x 1 and 1 x 1 become r x c; r x c stays as it is. The gradient of
// an operand always has the operand's shape.
#include "given.hpp"

Matrix un_broadcast(const Matrix& dy, int rows, int columns) {
    Matrix gradient(rows, columns);  // zeros
    for (int i = 0; i < dy.rows; ++i)
        for (int j = 0; j < dy.columns; ++j) todo();  // where does dy.at(i, j) go?
    return gradient;
}
