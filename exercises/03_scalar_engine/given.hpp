// Declares what exercise scalar-engine provides. It does not use tally.
#pragma once
#include <functional>
#include <map>
#include <memory>

#include "exercise.hpp"

inline namespace exercise_scalar_engine {

struct Node;
using Value = std::shared_ptr<Node>;

// One number of a computation. Newer nodes have larger ids.
struct Node {
    double value = 0, gradient = 0;
    std::vector<Value> inputs;                       // the operation's inputs; empty for a leaf
    std::function<void(const Node& node)> backward;  // adds to the gradients of the inputs; empty for a leaf
    int id = ++last_id;

    static inline int last_id = 0;
};

inline Value leaf(double value) {
    auto node = std::make_shared<Node>();
    node->value = value;
    return node;
}

}  // namespace exercise_scalar_engine

Value add(const Value& a, const Value& b);
Value multiply(const Value& a, const Value& b);
Value tanh_of(const Value& x);
void backward(const Value& y);  // adds dy/dx to the gradient of each leaf x that y was computed from
HAND_IN(add);
HAND_IN(multiply);
HAND_IN(tanh_of);
HAND_IN(backward);
