// The answer and the check of exercise engine.
#include "given.hpp"

#include "check.hpp"
#include "toy.hpp"

namespace {

namespace right {
// Returns the gradient of x, which is zeros if no gradient has arrived.
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

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum = std::fma(at(a->value, i * inner + k), at(b->value, k * columns + j), sum);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float>&da = gradient_of(a), &db = gradient_of(b), dy = node.gradient;
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga = std::fma(at(dy, i * columns + j), at(b->value, k * columns + j), ga);
                    gb = std::fma(at(a->value, i * inner + k), at(dy, i * columns + j), gb);
                }
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0] / count;
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i] / by;
    };
    return y;
}

void backward(const Value& y) {
    gradient_of(y)[0] = 1;
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        newest->rule(*newest);
        newest->gradient.clear();
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace right

#include "12_engine.mistakes.hpp"

using tally::Tensor;

Value as_leaf(const Tensor& x) {
    const auto& shape = x.shape();
    const int columns = shape.rank() == 2 ? static_cast<int>(shape[1]) : 1;
    return leaf(static_cast<int>(shape[0]), columns, x.value().to_vector());
}

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto accumulate = [&](const Tensor& x, const Tensor& w, int size) {
        const int parts = static_cast<int>(x.shape()[0]) / size;
        Value weight = as_leaf(w);
        if (!look.runs([&] {
                for (const Tensor& micro : split(x, size))
                    yours.backward(yours.divide(yours.mean(yours.matmul(as_leaf(micro), weight)),
                                                static_cast<float>(parts)));
            }))
            return;
        for (const Tensor& micro : split(x, size)) (mean(matmul(micro, w)) / parts).backward();
        look.equal("gradient of w", exercise::as_numbers(weight->gradient), exercise::gradient_of(w));
        // tally's order of additions in a product determines the bits (docs/architecture.md).
        look.same_bits("gradient of w", weight->gradient, w.grad().to_vector(),
                       "Your gradient is right except for rounding, but its bits differ from tally's. In the "
                       "backward function of matmul(a, b), add each product directly to the existing "
                       "gradient, in the order of the rows of a.");
    };
    for (const int size : {6, 2, 3, 1}) {
        look.with("the six rows, " + std::to_string(size) + " in a micro-batch, losses divided");
        accumulate(exercise::toy_rows(), exercise::toy_weight(), size);
    }
    for (int draw = 0; draw < 3; ++draw) {
        const int size = look.whole(1, 4), parts = look.whole(2, 4), columns = look.whole(2, 4);
        look.with("random numbers, " + std::to_string(parts) + " micro-batches of " + std::to_string(size) +
                  " rows");
        const Tensor x = exercise::random_rows(look, size * parts, columns);
        accumulate(x, exercise::random_weight(look, columns), size);
    }
    look.with("h = matmul(x, v), mean(add(h, matmul(h, v))): h and v are used twice");
    const Tensor x = exercise::random_rows(look, 4, 3),
                 square = tally::parameter(exercise::random_rows(look, 3, 3).value());
    Value v = as_leaf(square), h;
    if (look.runs([&] {
            h = yours.matmul(as_leaf(x), v);
            yours.backward(yours.mean(yours.add(h, yours.matmul(h, v))));
        })) {
        const Tensor product = matmul(x, square);
        if (look.equal("product matmul(x, v)", exercise::as_numbers(h->value),
                       exercise::numbers(product.value())))
            look.same_bits("product matmul(x, v)", h->value, product.value().to_vector(),
                           "Your matrix product is right except for rounding, but its bits differ from "
                           "tally's. Compute each number as one sum, and add to the sum with std::fma.");
        mean(product + matmul(product, square)).backward();
        look.equal("gradient of v", exercise::as_numbers(v->gradient), exercise::gradient_of(square));
    }
}

const exercise::Add add_to_the_course(
    {.title = "an array engine from scratch, with the same bits",
     .minutes = 60,
     .lesson = "arrays",
     .hints =
         {"In exercise newest-first, in which order does backward visit the nodes? In exercise matmul, which "
          "two products are the gradients of a and b?",
          "Write mean and divide first, because they look like add(). Then write backward with a "
          "std::map<int, Value> of the nodes that it still has to visit, with the nodes' ids as keys. Write "
          "matmul last: the product needs three loops, and the backward function of matmul needs the same "
          "three loops.",
          "In backward(): set the gradient of y to 1. While the map of the nodes to visit is not empty, "
          "remove the node with the largest id. If this node has inputs, call its backward rule, clear its "
          "gradient, and put its inputs into the map. In the backward rule of matmul(a, b), the inner loop "
          "adds one product to the gradient of a and one product to the gradient of b."},
     .why =
         "You have written an autograd engine. tally works in the same way and computes the same bits. tally "
         "also has more operations, counts the memory that arrays use, and supports a second device."},
    examine, answers);

}  // namespace
