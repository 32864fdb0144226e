// Repair the weights that micro-batches of unequal sizes have in the mean over all rows.
//
// Six rows come in two micro-batches, of 4 and of 2 rows. The code below divides the mean of each
// micro-batch by 2, the number of micro-batches. Each row of the small micro-batch therefore counts twice
// as much as each row of the large one:
//
//     all six rows at once     [-0.3536  0.0207 -0.6125]
//     the code below           [-0.4835  0.0466 -0.7156]
//
// At the end, w.grad() must be the gradient of the mean over all rows of all micro-batches. Each ROW must
// count the same, for any number of micro-batches of any sizes.
//
// The question: which weight must the mean of the micro-batch of four rows have in the mean over all six
// rows?
//
// Given:
//     micro.shape()[0]       // the number of rows of micro, an integer
//     loss / 7, loss * 0.5   // a Tensor divided or multiplied by a number is a Tensor
#include "given.hpp"

void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros) {
        Tensor loss = mean(matmul(micro, w));
        (loss / micros.size()).backward();
    }
}
