// Write an engine for matrices, in about sixty lines and without tally.
//
// add() is an example. A node's `rule` is its backward function: it adds to the gradients of the inputs. At
// the end your gradients must have the same BITS as those of tally, so the order of the additions matters:
//
//   matmul    Start each sum at 0, and add each product with std::fma(p, q, sum), which rounds once.
//             The backward rule of matmul (exercise matmul) adds each product directly to the existing
//             gradient, with std::fma. This rule must visit the rows of `a` in order.
//   mean      Divide the sum of all numbers by their count. Backward divides the gradient by the count.
//   divide    Divide each number of x by `by`. Backward also divides the gradient by `by`.
//   backward  Set the gradient of y to 1. Call the backward rule of the newest node first (exercise
//             newest-first). A node without inputs keeps its gradient, and the next backward adds to it.
//
// Given:
//     using Value = std::shared_ptr<Node>;
//     struct Node { int rows, columns; std::vector<float> value, gradient; std::vector<Value> inputs;
//                   std::function<void(const Node&)> rule; int id; };  // newer nodes have larger ids
//     Value leaf(int rows, int columns, std::vector<float> value);     // a node without inputs and rule
#include "given.hpp"

std::vector<float>& gradient_of(const Value& x) {  // resized, because a new node has an empty gradient
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) { todo(); }
Value mean(const Value& x) { todo(); }  // returns a 1 x 1 node
Value divide(const Value& x, float by) { todo(); }
void backward(const Value& y) { todo(); }
