// Repair: micro-batches of a contrastive loss.
//
// A contrastive loss compares each item with all other items. The code below compares only the items of one
// micro-batch, so it trains on another loss. w.grad() must become the gradient of
// loss_of_all(encode(all rows, w)), and only the graph of one micro-batch may be in memory at a time.
//
// A representation is small: two numbers for each item, so all representations fit into memory, but the
// graphs of the encoder do not. Use two passes over the micro-batches:
//     first    Compute all representations without a graph. Compute the gradient of the loss for each of them.
//     second   Encode each micro-batch again, with a graph. Send its rows of that gradient backward into w.
//
// The question of the second pass: if g is a constant, which scalar has the gradient g for h = encode(...)?
//
// The check compares w.grad() with the gradient of the full batch, and measures your memory in bytes.
//
// Given:
//     Tensor encode(const Tensor& x, const Tensor& w);   // the representations, of shape {rows, 2}
//     Tensor loss_of_all(const Tensor& z);               // a mean over all rows of z
//     { const NoGrad off; ... }                          // records no graph in this block
//     concat(parts, 0), slice(a, 0, from, to)            // joins the rows of a vector; rows `from` to `to` - 1
//     parameter(z.value()), constant(z.grad())           // a new parameter; a gradient as a Tensor
//     x.shape()[0], a * b, sum(a)                        // rows (std::int64_t); product by element; sum
#include "given.hpp"

void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros) (loss_of_all(encode(micro, w)) / micros.size()).backward();
}
