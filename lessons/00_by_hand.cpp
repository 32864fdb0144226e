// Before lesson 1: a small reverse-mode autograd engine for numbers, written from scratch.
//
//     c++ -std=c++20 lessons/00_by_hand.cpp -o by_hand && ./by_hand
// A gradient says how fast a result changes if one input changes. Begin to read at main(), at the bottom.
// tally's engine also computes gradients, but of arrays on a CPU or GPU, and counts the bytes of the arrays.
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace by_hand {

// The gradient of a number is a sum, because the number may change the result in several ways. The first
// summand is set (`Write::set`), and each later summand is added (`Write::add`).
enum class Write { set, add };
struct Into {
    double& place;
    Write how;
    void operator()(double part) const { place = how == Write::set ? part : place + part; }
};

// Holds a number and the operation that computed the number.
struct Node {
    double value, gradient = 0;                 // the gradient is undefined before its first summand arrives
    std::vector<std::shared_ptr<Node>> inputs;  // the operation's inputs
    std::function<void(const Node&)> rule;      // backward: adds gradient times slope to each input
    int id = ++last_id;                         // newer nodes have larger ids
    bool arrived = false;                       // whether the gradient has its first summand

    Into into() { return {gradient, std::exchange(arrived, true) ? Write::add : Write::set}; }
    static inline int last_id = 0;
};
using Number = std::shared_ptr<Node>;

Number number(double value) { return Number(new Node{.value = value, .inputs = {}, .rule = {}}); }

// Each operation computes a result. The `rule` of the result passes the result's gradient on to the inputs.
Number operator+(Number a, Number b) {
    return Number(new Node{.value = a->value + b->value, .inputs = {a, b}, .rule = [](const Node& y) {
                               y.inputs[0]->into()(y.gradient);
                               y.inputs[1]->into()(y.gradient);
                           }});
}

Number operator*(Number a, Number b) {
    return Number(new Node{.value = a->value * b->value, .inputs = {a, b}, .rule = [](const Node& y) {
                               y.inputs[0]->into()(y.gradient * y.inputs[1]->value);
                               y.inputs[1]->into()(y.gradient * y.inputs[0]->value);
                           }});
}

Number tanh(Number x) {
    return Number(new Node{.value = std::tanh(x->value), .inputs = {x}, .rule = [](const Node& y) {
                               y.inputs[0]->into()(y.gradient * (1 - y.value * y.value));
                           }});
}

// Visits the newest node first. When backward() visits a number, the gradient of the number is complete,
// because all operations that read the number are newer.
void backward(Number y) {
    std::map<int, Node*> waiting{{y->id, y.get()}};
    y->into()(1);
    while (!waiting.empty()) {
        Node* newest = waiting.extract(std::prev(waiting.end())).mapped();
        if (!newest->rule) continue;  // a leaf keeps its gradient, and the next backward adds to the gradient
        newest->rule(*newest);
        newest->arrived = false;
        for (const Number& input : newest->inputs) waiting.emplace(input->id, input.get());
    }
}

}  // namespace by_hand

// Computes the gradient of the mean of w x for all six rows at once, and in three micro-batches of 2 rows.
int main() {
    using namespace by_hand;
    const double rows[] = {0.375, -1.125, 0.625, -0.25, -1.5, -0.2466};
    const auto mean = [&](Number w, int from, int to) {
        Number sum = w * number(rows[from]);
        for (int row = from + 1; row < to; ++row) sum = sum + w * number(rows[row]);
        return sum * number(1.0 / (to - from));
    };

    Number w = number(0.5);
    backward(mean(w, 0, 6));
    std::printf("all six rows at once                 %8.4f\n", w->gradient);

    w = number(0.5);
    // adds the second and third gradient
    for (int row = 0; row < 6; row += 2) backward(mean(w, row, row + 2));
    std::printf("three micro-batches, added up        %8.4f   three times too large\n", w->gradient);

    w = number(0.5);
    for (int row = 0; row < 6; row += 2) backward(mean(w, row, row + 2) * number(1.0 / 3));
    std::printf("three micro-batches, each divided    %8.4f   right\n", w->gradient);
    return 0;
}
