// Repair the gradient of a batch that comes in micro-batches.
//
// Six rows do not fit into memory at once, so they come in micro-batches of `size` rows. The backward() of
// each micro-batch adds its gradient to w.grad(). At the end, w.grad() must be the gradient of the mean
// loss over ALL rows, as if all rows came at once. With micro-batches of two rows, the code below computes
// a wrong gradient:
//
//     all six rows at once     [-0.3536  0.0207 -0.6125]
//     the code below           [-1.0608  0.0620 -1.8375]
//
// Something is missing in one line. Your function must be right for micro-batches of 1, 2, 3 and 6 rows.
// The number of rows is always a multiple of `size`.
//
// The question: how many micro-batches contribute to w.grad()?
//
// Given:
//     x.shape()[0]                       // the number of rows of x, an integer
//     std::vector<Tensor> split(x, size) // the micro-batches of x
//     loss / 7, loss * 0.5               // a Tensor divided or multiplied by a number is a Tensor
#include "given.hpp"

void accumulate(const Tensor& x, const Tensor& w, int size) {
    for (const Tensor& micro : split(x, size)) {
        Tensor loss = mean(matmul(micro, w));
        loss.backward();
    }
}
