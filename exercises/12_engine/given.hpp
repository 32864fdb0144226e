// Declares what exercise engine provides. It does not use tally.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "exercise.hpp"

inline namespace exercise_engine {

struct Node;
using Value = std::shared_ptr<Node>;

// A matrix, row after row, and its operation. Newer nodes have larger ids.
struct Node {
    int rows, columns;
    std::vector<float> value, gradient;     // the gradient is empty until one arrives
    std::vector<Value> inputs;              // the operation's inputs; empty for a leaf
    std::function<void(const Node&)> rule;  // backward: adds to the inputs' gradients
    int id = ++last_id;

    static inline int last_id = 0;
};

inline Value leaf(int rows, int columns, std::vector<float> value) {
    return Value(new Node{rows, columns, std::move(value), {}, {}, {}});
}

}  // namespace exercise_engine

Value matmul(const Value& a, const Value& b);
Value add(const Value& a, const Value& b);  // both of the same shape
Value mean(const Value& x);                 // 1 x 1
Value divide(const Value& x, float by);
void backward(const Value& y);  // adds to the gradients of all leaves that y was made of; y is 1 x 1
HAND_IN(matmul);
HAND_IN(add);
HAND_IN(mean);
HAND_IN(divide);
HAND_IN(backward);
