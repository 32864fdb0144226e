// Write the gradient of a broadcast.
//
// A bias of shape 1 x 3 is added to a batch of shape 2 x 3. Forward uses each number of the bias twice,
// once for each row. The gradient of each number of the bias is therefore the sum of two numbers of dy, the
// gradient of the result:
//
//     dy, the gradient of the result      1   2   3
//                                        10  20  30
//     the gradient of the bias           11  22  33
//
// Write this backward function for every broadcast. The result and its gradient dy have the shape r x c.
// The operand has the shape rows x columns, which is 1 x c, r x 1, 1 x 1 or r x c. Return the gradient of
// the operand, in the shape of the operand.
//
// The question: which number of the operand did forward use in row i and column j of the result?
//
// Given:
//     struct Matrix {
//         int rows, columns;
//         double& at(int i, int j);  // throws if row i or column j does not exist
//     };
#include "given.hpp"

Matrix un_broadcast(const Matrix& dy, int rows, int columns) {
    Matrix gradient(rows, columns);  // zeros
    for (int i = 0; i < dy.rows; ++i)
        for (int j = 0; j < dy.columns; ++j) todo();
    return gradient;
}
