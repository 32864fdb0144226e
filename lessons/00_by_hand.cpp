// Before lesson 1: reverse-mode autograd by hand, from nothing. Numbers, the one idea, a graph, and a loop.
//
//     c++ -std=c++20 lessons/00_by_hand.cpp -o by_hand && ./by_hand
// A gradient says how fast a result moves when one number does. main(), at the bottom, is a good place to begin.
// tally's own engine does this with arrays, on two devices, and with memory that is counted; the idea is no other.
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace by_hand {

// A gradient is added up, as a number may move the result in several ways. Whoever computes a part of it is told
// where it belongs, and whether it is the first part, which sets, or a later one, which adds.
enum class Write { set, add };
struct Into {
    double& place;
    Write how;
    void operator()(double part) const { place = how == Write::set ? part : place + part; }
};

// A number that remembers how it was made.
struct Node {
    double value, gradient = 0;                 // what the gradient holds before the first part means nothing
    std::vector<std::shared_ptr<Node>> inputs;  // what it was made of
    std::function<void(const Node&)> rule;      // how its gradient goes on to them: times its slope in each
    int id = ++last_id;                         // who is made later has the larger one
    bool arrived = false;                       // whether a part of the gradient has

    Into into() { return {gradient, std::exchange(arrived, true) ? Write::add : Write::set}; }
    static inline int last_id = 0;
};
using Number = std::shared_ptr<Node>;

Number number(double value) { return Number(new Node{.value = value, .inputs = {}, .rule = {}}); }

// Forward and backward side by side: what it computes, and how the gradient dy comes back.
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

// All of backward: the newest first. Whoever read a number is newer than it, so when its turn comes, its gradient
// is complete.
void backward(Number y) {
    std::map<int, Node*> waiting{{y->id, y.get()}};
    y->into()(1);
    while (!waiting.empty()) {
        Node* newest = waiting.extract(std::prev(waiting.end())).mapped();
        if (!newest->rule) continue;  // made of nothing: here the gradient stays, and the next backward adds
        newest->rule(*newest);
        newest->arrived = false;
        for (const Number& input : newest->inputs) waiting.emplace(input->id, input.get());
    }
}

}  // namespace by_hand

// Six numbers and one weight: the mean of w x. Then in three portions of two, micro-batches, each with its own mean.
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
    for (int row = 0; row < 6; row += 2) backward(mean(w, row, row + 2));  // the second and third are added
    std::printf("three micro-batches, added up        %8.4f   three times too large\n", w->gradient);

    w = number(0.5);
    for (int row = 0; row < 6; row += 2) backward(mean(w, row, row + 2) * number(1.0 / 3));
    std::printf("three micro-batches, each divided    %8.4f   right\n", w->gradient);
    return 0;
}
