// Write an engine for single numbers. The check trains a network with your engine.
//
//     struct Node {                                        // Value is std::shared_ptr<Node>: write a->value
//         double value, gradient;                          // the gradient is 0 at the start
//         std::vector<Value> inputs;                       // the operation's inputs; empty for a leaf
//         std::function<void(const Node& node)> backward;  // adds to the gradients of the inputs
//         int id;                                          // newer nodes have larger ids
//     };
//     Value leaf(double value);                            // creates a node without inputs
//
// add() is complete: it is an example of an operation. Its backward function captures a and b by value
// ([a, b], not [&]), because it runs after add() has returned. The other functions are your task.
//
//   multiply   The backward function of y = a * b adds, to the gradient of each input, the gradient of y
//              times the other input.
//   tanh_of    std::tanh(x->value) computes y. The derivative of y = tanh(x) is 1 - y * y.
//   backward   Set the gradient of y to 1. Visit the nodes from the newest to the oldest, each node once (exercise
//              newest-first), and call node->backward(*node) at each node that has inputs. Gradients add up: a second
//              backward() adds to the gradients of the leaves, the nodes without inputs.
#include "given.hpp"

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->value + b->value);
    y->inputs = {a, b};
    y->backward = [a, b](const Node& node) {
        a->gradient += node.gradient;
        b->gradient += node.gradient;
    };
    return y;
}

Value multiply(const Value& a, const Value& b) { todo(); }

Value tanh_of(const Value& x) { todo(); }

void backward(const Value& y) { todo(); }
