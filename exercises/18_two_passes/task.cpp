// A loss in which all items meet, in two passes.
//
// A contrastive loss compares each item with all others, so micro-batches with losses of their own train on something
// else. But the representations z are small. So:
//
//   1. encode all micro-batches without a graph (after `const NoGrad off;` in a block of its own); concat(them, 0);
//   2. make the value of that a parameter z; loss_of_all(z).backward() leaves in z.grad() what each representation owes;
//   3. encode each micro-batch once more, with a graph this time, and send its rows of z.grad() back through it: the
//      gradient of sum(h * g), with g a constant, is g for h. slice(a, 0, from, to) takes rows.
//
// The ledger looks at the memory: the graph of one micro-batch at a time.
#include "given.hpp"

void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros) (loss_of_all(encode(micro, w)) / micros.size()).backward();
}
