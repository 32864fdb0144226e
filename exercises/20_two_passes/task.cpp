// Repair a contrastive loss that is computed in micro-batches.
//
// A contrastive loss compares each item with all other items. The code below compares each item only with the items of
// its own micro-batch, so the code trains on another loss. w.grad() must become the gradient of
// loss_of_all(encode(all rows, w)). At any time, only the graph of one micro-batch may be in memory.
//
// A representation is small: two numbers for each item, so all representations fit into memory, but the
// graphs of the encoder do not. Use two passes over the micro-batches:
//     first    Compute all representations without a graph. Compute the gradient of the loss for each representation.
//     second   Encode each micro-batch again, with a graph. Continue backward from the gradient of the
//              micro-batch's representations to w.
//
// The question of the second pass over the micro-batches: you know g, the gradient of the loss with respect
// to h = encode(...), as a constant. Start backward() at a scalar. Which scalar, computed from h and g, has
// the gradient g with respect to h?
//
// The check compares w.grad() with the gradient of the full batch, and measures the memory of your code in bytes.
//
// Given:
//     Tensor encode(const Tensor& x, const Tensor& w);   // the representations, of shape {rows, 2}
//     Tensor loss_of_all(const Tensor& z);               // a mean over all rows of z
//     { const NoGrad off; ... }                          // records no graph in this block
//     concat(parts, 0), slice(a, 0, from, to)            // joins the rows of all parts; rows `from` to `to` - 1
//     parameter(z.value()), constant(z.grad())           // a new parameter; a gradient as a Tensor
//     x.shape()[0], a * b, sum(a)                        // number of rows (std::int64_t); elementwise product; sum
#include "given.hpp"

void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros) (loss_of_all(encode(micro, w)) / micros.size()).backward();
}
