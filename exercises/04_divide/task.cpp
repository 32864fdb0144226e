// Divide.
//
// Six rows do not fit into memory at once, so they come in micro-batches of `size` rows. Each one's backward() adds its
// gradient to what w.grad() already holds. When the last one has been, w.grad() shall be the gradient of the mean over
// ALL rows, as if they had come at once:
//
//     all six rows      [-0.3536  0.0207 -0.6125]
//     as it is here     [-1.0608  0.0620 -1.8375]
//
// Something is missing in one line. It must be right for micro-batches of 1, 2, 3 and 6 rows.
#include "given.hpp"

void accumulate(const Tensor& x, const Tensor& w, int size) {
    for (const Tensor& micro : split(x, size)) {
        Tensor loss = mean(matmul(micro, w));
        loss.backward();
    }
}
