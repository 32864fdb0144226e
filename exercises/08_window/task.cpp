// Write a window, which accumulates the gradients of the micro-batches of one update, and an epoch of
// windows. The check trains a linear regression with your code.
//
//     struct Window {
//         Tensor w;             // the weights; sgd_step({window.w}, rate) subtracts rate * gradient
//         double rate;          // the learning rate
//         Reduction reduction;  // Reduction::mean or Reduction::sum
//         int rows;             // the number of rows that this window has accumulated
//     };
//     Tensor row_losses(const Tensor& x, const Tensor& target, const Tensor& w);  // one loss for each row of x
//
//   begin    Clear the gradient (w.zero_grad()), and set the number of rows to 0.
//   add      Accumulate the gradient of one micro-batch, which has x.shape()[0] rows. The next micro-batch may have
//            more or fewer rows.
//   finish   Update w once. With Reduction::sum, use the gradient of the sum of all row losses of the window. With
//            Reduction::mean, divide this gradient once, by the number of rows. If rows is 0, do not change w.
//   epoch    Cut x into micro-batches of `micro_rows` rows, make an update after every `micros` micro-batches, and
//            return the number of updates. The last micro-batch may have fewer rows, and the last window may have
//            fewer micro-batches: use them, too. slice(x, 0, from, to) returns the rows from `from` to `to` - 1.
#include "given.hpp"

void begin(Window& window) { todo(); }

void add(Window& window, const Tensor& x, const Tensor& target) { todo(); }

void finish(Window& window) { todo(); }

int epoch(Window& window, const Tensor& x, const Tensor& target, int micro_rows, int micros) { todo(); }
