// The answer and the check of exercise scalar-engine.
#include "given.hpp"

#include <fmt/format.h>

#include <array>

#include "check.hpp"

namespace {

namespace right {
Value add(const Value& a, const Value& b) {
    Value y = leaf(a->value + b->value);
    y->inputs = {a, b};
    y->backward = [a, b](const Node& node) {
        a->gradient += node.gradient;
        b->gradient += node.gradient;
    };
    return y;
}

Value multiply(const Value& a, const Value& b) {
    Value y = leaf(a->value * b->value);
    y->inputs = {a, b};
    y->backward = [a, b](const Node& node) {
        a->gradient += node.gradient * b->value;
        b->gradient += node.gradient * a->value;
    };
    return y;
}

Value tanh_of(const Value& x) {
    Value y = leaf(std::tanh(x->value));
    y->inputs = {x};
    y->backward = [x](const Node& node) { x->gradient += node.gradient * (1 - node.value * node.value); };
    return y;
}

void backward(const Value& y) {
    y->gradient = 1;
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        newest->backward(*newest);
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace right

#include "03_scalar_engine.mistakes.hpp"

using exercise::Numbers;
using Leaves = std::vector<Value>;

Leaves leaves_of(const Numbers& values) {
    Leaves result;
    for (const double value : values) result.push_back(leaf(value));
    return result;
}

Numbers gradients(const Leaves& leaves) {
    Numbers result;
    for (const Value& one : leaves) result.push_back(one->gradient);
    return result;
}

// A network with two inputs, three hidden units with tanh, and one output: 13 weights.
Value network(const Functions& f, const Leaves& w, const Value& a, const Value& b) {
    Value y = w[12];
    for (std::size_t k = 0; k < 3; ++k) {
        const Value sum = f.add(f.add(f.multiply(w[3 * k], a), f.multiply(w[3 * k + 1], b)), w[3 * k + 2]);
        y = f.add(y, f.multiply(w[9 + k], f.tanh_of(sum)));
    }
    return y;
}

struct Training {
    Numbers losses;   // one for each update, and the last one
    Numbers outputs;  // of the trained network
};

Training train_xor(const Functions& f, int updates) {
    const Leaves w = leaves_of({0.9, -0.4, 0.1, -0.7, 0.8, -0.3, 0.5, 0.6, -0.2, 0.4, -0.6, 0.7, 0.1});
    Training result;
    for (int update = 0; update <= updates; ++update) {
        double loss = 0;
        result.outputs.clear();
        for (const int item : {0, 1, 2, 3}) {  // four micro-batches of one item
            const int a = item / 2, b = item % 2;
            const Value y = network(f, w, leaf(a), leaf(b));
            const Value error = f.add(y, leaf(-(a ^ b)));
            const Value part = f.multiply(f.multiply(error, error), leaf(0.25));
            f.backward(part);
            loss += part->value;
            result.outputs.push_back(y->value);
        }
        result.losses.push_back(loss);
        if (update == updates) break;
        for (const Value& weight : w) {
            weight->value -= 0.1 * weight->gradient;
            weight->gradient = 0;
        }
    }
    return result;
}

using Formula = std::function<Value(const Functions&, const Leaves&)>;

// Compares the value of a formula and the gradients of its leaves. `tested` has the functions under test.
void compare(exercise::AnswerTest& look, const Functions& tested, const std::string& where,
             const Numbers& values, const Formula& formula, int times = 1) {
    look.with(where);
    const auto result_of = [&](const Functions& f, const Leaves& x) {
        double result = 0;
        for (int time = 0; time < times; ++time) {
            const Value y = formula(f, x);
            result = y->value;
            f.backward(y);
        }
        return result;
    };
    const Leaves x = leaves_of(values), wanted = leaves_of(values);
    double result = 0;
    if (!look.runs([&] { result = result_of(tested, x); })) return;
    if (look.equal("value", result, result_of(answers.right, wanted)))
        look.equal(x.size() == 1 ? "gradient" : "gradients", gradients(x), gradients(wanted));
}

void examine_multiply(exercise::AnswerTest& look, const Functions& yours) {
    look.part("multiply");
    Functions f = answers.right;
    f.multiply = yours.multiply;
    const auto product = [](const Functions& g, const Leaves& x) { return g.multiply(x[0], x[1]); };
    compare(look, f, "y = a * b at a = 3, b = 5", {3, 5}, product);
    compare(look, f, "y = (a * b) * a at a = 3, b = 5", {3, 5},
            [&](const auto& g, const auto& x) { return g.multiply(product(g, x), x[0]); });
}

void examine_tanh(exercise::AnswerTest& look, const Functions& yours) {
    look.part("tanh_of");
    Functions f = answers.right;
    f.tanh_of = yours.tanh_of;
    compare(look, f, "y = 3 * tanh(x) at x = 0.5", {0.5},
            [](const auto& g, const auto& x) { return g.multiply(leaf(3), g.tanh_of(x[0])); });
    compare(look, f, "y = tanh(x) + x at x = 0.5", {0.5},
            [](const auto& g, const auto& x) { return g.add(g.tanh_of(x[0]), x[0]); });
}

void examine_backward(exercise::AnswerTest& look, const Functions& yours) {
    look.part("backward");
    Functions f = answers.right;
    f.add = yours.add;
    f.backward = yours.backward;
    compare(look, f, "the diamond: b = 2 * a, c = a * a, d = b * c at a = 5", {5},
            [](const auto& g, const auto& x) {
                const Value b = g.multiply(leaf(2), x[0]);
                return g.multiply(b, g.multiply(x[0], x[0]));
            });
    compare(look, f, "b = 2 * a, c = b * b, d = b * c at a = 5", {5}, [](const auto& g, const auto& x) {
        const Value b = g.multiply(leaf(2), x[0]);
        return g.multiply(b, g.multiply(b, b));
    });
    compare(
        look, f, "y = a * b computed twice, a backward() each time", {3, 5},
        [](const auto& g, const auto& x) { return g.multiply(x[0], x[1]); }, 2);
    for (int draw = 0; draw < 3; ++draw) {
        struct Step {
            int operation;
            std::size_t a, b;
        };
        std::vector<Step> steps;  // each operation uses two of the values before it
        for (int i = 0; i < 7; ++i)
            steps.push_back({look.whole(0, 2), static_cast<std::size_t>(look.whole(0, i + 2)),
                             static_cast<std::size_t>(i + 2)});
        compare(look, f, "seven random operations on three numbers", look.uniforms(3, 0.5, 1.5),
                [&](const auto& g, const auto& x) {
                    Leaves values = x;
                    for (const auto& [operation, a, b] : steps)
                        values.push_back(operation == 0   ? g.add(values[a], values[b])
                                         : operation == 1 ? g.multiply(values[a], values[b])
                                                          : g.add(g.tanh_of(values[a]), values[b]));
                    return values.back();
                });
    }
    // A wrong backward() may visit each of the 2^60 paths.
    if (!look.complaints().empty()) return;
    compare(look, f, "y = x + x, repeated 60 times", {1}, [](const auto& g, const auto& x) {
        Value y = x[0];
        for (int i = 0; i < 60; ++i) y = g.add(y, y);
        return y;
    });
}

void examine(exercise::AnswerTest& look, const Functions& yours) {
    examine_multiply(look, yours);
    examine_tanh(look, yours);
    examine_backward(look, yours);
    if (!look.complaints().empty()) return;
    look.part("the training");
    look.with("a training of 300 updates for XOR");
    constexpr int updates = 300;
    Training training;
    if (!look.runs([&] { training = train_xor(yours, updates); })) return;
    const Training wanted = train_xor(answers.right, updates);
    if (!look.equal("loss after 300 updates", training.losses.back(), wanted.losses.back(), 1e-3)) return;
    const Numbers& y = training.outputs;
    look.trained(fmt::format(
        "Your engine has trained a network of 13 weights for XOR: the loss fell from {:.3f} to {:.4f} in "
        "{} updates. Its outputs for 00, 01, 10 and 11 are {:.2f}, {:.2f}, {:.2f} and {:.2f}.",
        training.losses.front(), training.losses.back(), updates, y[0], y[1], y[2], y[3]));
}

const exercise::Add add_to_the_course(
    {.title = "a scalar engine, which trains a network for XOR",
     .minutes = 30,
     .lesson = "the-diamond",
     .hints =
         {"Let y = a * b. If the gradient of y is 5, which number must the backward function add to the "
          "gradient of a, and which number to b's gradient?",
          "Copy add() for multiply() and tanh_of(), and change two places: the value of y, and the lines "
          "with +=. Let backward() keep the nodes that it still has to visit in a std::map<int, Value>, with "
          "the nodes' ids as keys.",
          "In backward(): set y->gradient to 1, then put y into the map of the nodes to visit. While the map "
          "is not empty, take out the node with the largest id, which is the last node of the map. If the "
          "node has inputs, call its backward function and put its inputs into the map."},
     .why = "You have written an autograd engine. Each of the 300 updates called your backward() four times, "
            "and each weight added up its four gradients: this is gradient accumulation. tally does the same "
            "with arrays."},
    examine, answers);

}  // namespace
