// Build the engine.
//
// No tally in here: about sixty lines of yours are an engine for arrays, and at the end it gives the same BITS as the
// real one on the toy. What a Node is stands in exercises/10_engine/given.hpp; add() is done, and shows how it goes.
//
//   matmul    sums of products, each added by std::fma(p, q, sum): p times q plus sum, rounded once. Its rule adds to the
//             gradients of both operands (exercise matmul): each product directly to the gradient that is there, row of a
//             after row. That order, and rounding once, is what makes the bits the same.
//   mean      its rule gives each number the gradient, divided by how many there are
//   divide    divides, and so does its rule
//   backward  the newest first (exercise newest-first). A leaf keeps its gradient, so that another backward adds to it.
#include "given.hpp"

// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
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

Value mean(const Value& x) { todo(); }

Value divide(const Value& x, float by) { todo(); }

void backward(const Value& y) { todo(); }
