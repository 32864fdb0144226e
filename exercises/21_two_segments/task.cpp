// Write a checkpoint by hand, for two halves of a chain of layers.
//
// backward_plainly() keeps the result of each layer until backward. Compute the same gradients, but never keep the
// results of more than half of the layers:
//     1. Run the first half WITHOUT a graph. Make the value of its result a parameter, `middle`.
//     2. Run the second half from `middle` with a graph, and call backward on the mean of its result. Now
//        `middle` and the weights of the second half have their gradients.
//     3. Run the first half again, with a graph, and send the gradient of `middle` backward through it.
//
// The question of step 3, backward through the first half of the layers: h is their result, and the constant
// g is the gradient of h. Start backward() at a scalar. Which scalar, computed from h and g, has the gradient
// g with respect to h?
//
// The check compares all gradients, and measures the memory of your code in bytes.
//
// Given:
//     Tensor layers(x, w, from, to);   // the result of layers `from` to `to` - 1
//     void backward_plainly(x, w) { mean(layers(x, w, 0, w.size())).backward(); }
//     { const NoGrad off; ... }        // records no graph in this block
//     parameter(h.value())             // a new parameter with the value of h
//     constant(middle.grad())          // a gradient as a Tensor
//     a * b, sum(a), mean(a)           // elementwise product; sum and mean of all elements
#include "given.hpp"

void backward_in_two(const Tensor& x, const std::vector<Tensor>& w) {
    const std::size_t half = w.size() / 2;
    todo();
}
