// Micro-batches of unequal sizes.
//
// Six rows come as 4 + 2. Each micro-batch's mean is divided by 2, the number of micro-batches, as one learns it: and
// each of the two rows at the end now counts twice as much as each of the four before.
//
//     all six rows      [-0.3536  0.0207 -0.6125]
//     as it is here     [-0.4835  0.0466 -0.7156]
//
// Make each ROW count the same, whatever the sizes. micro.shape()[0] says how many rows a micro-batch has.
#include "given.hpp"

void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros) {
        Tensor loss = mean(matmul(micro, w));
        (loss / micros.size()).backward();
    }
}
