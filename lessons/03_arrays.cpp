// Lesson 3: arrays. What was repeated is summed on the way back, and a product has two gradients.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tally/lesson/lesson.hpp"
#include "tally/tally.hpp"

using namespace tally;
using namespace tally::lesson;

template <class S> Picture drawn(const Array<S>& x, const Array<S>& w, const Array<S>& b) {
    Watch watch;
    auto X = parameter(x.clone()), W = parameter(w.clone()), bias = parameter(b.clone());
    Picture picture("sum(X W + b): the gradient has the shape of its value, everywhere");
    picture.name(X, "X").name(W, "W").name(bias, "b");
    picture.backward(sum(matmul(X, W) + bias), "sum(X W + b)");
    return picture;
}

// A matrix of whole numbers, row by row.
template <class S> std::string in_rows(const Array<S>& matrix) {
    const std::vector<S> numbers = matrix.to_vector();
    const auto width = static_cast<std::size_t>(matrix.shape()[1]);
    std::string text;
    for (std::size_t i = 0; i < numbers.size(); ++i)
        text += (i == 0 ? "(" : i % width == 0 ? "; " : " ") + std::to_string(std::lround(numbers[i]));
    return text + ")";
}

template <class S> void arrays() {
    const Device device = options().device;
    auto X = parameter(Array<S>({3, 2}, {1, 2, 3, 4, 5, 6}, device));
    auto W = parameter(Array<S>({2, 2}, {1, 0, -1, 3}, device));
    auto b = parameter(Array<S>({2}, {0.5, -0.5}, device));

    step("A bias b of shape (2), added to X W of shape (3, 2): once in each row.");
    code(2);
    auto Y = matmul(X, W) + b;
    auto loss = sum(Y);
    show("X", X);
    show("W", W);
    show("b", b);
    show("X W + b", Y);
    const Picture picture = drawn(X.value(), W.value(), b.value());
    graph("arrays", picture.svg(), picture.dot());

    predict("The loss is the sum of all six numbers. b.grad is",
            {"[1 1]", "[3 3]", "[1/3 1/3]", "a (3, 2) matrix of ones"}, answer(2),
            "Three rows use b, so three gradients arrive, and they add (lesson 2).");
    loss.backward();
    show("b.grad", b.grad());
    show("W.grad", W.grad());
    show("X.grad", X.grad());
    check_equal("the loss, row by row: 5 + 11 + 17", loss.item(), S(5 + 11 + 17));
    check_equal("b: a 1 from each of three rows", b.grad(), Array<S>({2}, {3, 3}));
    check_equal("W: the column sums of X", W.grad(), Array<S>({2, 2}, {9, 9, 12, 12}));
    check_equal("X: the row sums of W", X.grad(), Array<S>({3, 2}, {1, 2, 1, 2, 1, 2}));

    step("Any product Y = X V with any G arriving at Y: dX = G V^T and dV = X^T G.");
    auto V = parameter(Array<S>({2, 4}, {1, -2, 0, 3, 2, 1, -1, 0}, device));
    const Array<S> G({3, 4}, {1, 0, 2, -1, 0, 3, 1, 1, 2, -2, 0, 1}, device);
    note("V = " + in_rows(V.value()) + ", G = " + in_rows(G) + ".");
    X.zero_grad();
    code(1);
    matmul(X, V).backward(G);
    show("X.grad", X.grad());
    show("V.grad", V.grad());
    note("Three different sizes, 3, 2 and 4: here only the right transpose fits.");
    check_equal("X: by hand", X.grad(), Array<S>({3, 2}, {-2, 0, -3, 2, 9, 2}));
    check_equal("V: by hand", V.grad(), Array<S>({2, 4}, {11, -1, 5, 7, 14, 0, 8, 8}));

    predict("A column of shape (3, 1) times a vector of shape (3). The result has shape",
            {"(3)", "(3, 1)", "(3, 3)", "none: it is an error"}, answer(3),
            "Shapes are aligned at the right; an axis of 1, or none, is repeated.");
    auto column = parameter(Array<S>({3, 1}, {1, 2, 3}, device));
    auto vector = parameter(Array<S>({3}, {10, 20, 30}, device));
    code(2);
    auto outer = column * vector;
    sum(outer).backward();
    show("outer", outer);
    show("vector.grad", vector.grad());
    check_equal("nine numbers", outer, Array<S>({3, 3}, {10, 20, 30, 20, 40, 60, 30, 60, 90}));
    check_equal("each met 1, 2 and 3: 1 + 2 + 3", vector.grad(), Array<S>({3}, {6, 6, 6}));

    step("Several axes at once. p is repeated along one of them, q along two.");
    auto p = parameter(Array<S>({2, 1, 3}, {1, 2, 3, 4, 5, 6}, device));
    auto q = parameter(Array<S>({4, 1}, {1, -1, 2, 3}, device));
    std::vector<S> arriving(24);  // 0, 1, 2, ... 23
    std::iota(arriving.begin(), arriving.end(), S(0));
    code(2);
    auto r = p * q;
    r.backward(Array<S>({2, 4, 3}, arriving, device));
    auto shapes = table({"", "shape", "its gradient", "summed over"});
    shapes.row("p", to_string(p.shape()), to_string(p.grad().shape()), "the middle axis");
    shapes.row("q", to_string(q.shape()), to_string(q.grad().shape()), "the first and the last");
    shapes.row("p q", to_string(r.shape()), "-", "");
    check("gradient shape = value shape", p.grad().shape() == p.shape() && q.grad().shape() == q.shape());
    check_equal("p: by hand", p.grad(), Array<S>({2, 1, 3}, {36, 41, 46, 96, 101, 106}));
    check_equal("q: by hand", q.grad(), Array<S>({4, 1}, {205, 268, 331, 394}));

    step("The same engine on twelve single numbers: loss = sum(Y Y) / 8 in a loop.");
    const auto singles = [](const Array<S>& array) {
        std::vector<Var<S>> all;
        for (const S number : array.to_vector()) all.push_back(parameter(number));
        return all;
    };
    const auto gradients = [](const std::vector<Var<S>>& all) {
        std::vector<S> numbers;
        for (const auto& single : all) numbers.push_back(single.grad());
        return numbers;
    };
    const auto xs = singles(X.value()), ws = singles(W.value()), bs = singles(b.value());
    Var<S> total = S(0);
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 2; ++j) {
            if (i + j == 0) code(2);
            auto y = xs[2 * i] * ws[j] + xs[2 * i + 1] * ws[2 + j] + bs[j];
            total = total + y * y;
        }
    (total / 8).backward();

    X.zero_grad(), W.zero_grad(), b.zero_grad();
    Y = matmul(X, W) + b;
    (sum(Y * Y) / 8).backward();
    show("X.grad", X.grad());
    show("one by one", gradients(xs));
    check_equal("X", X.grad(), Array<S>({3, 2}, gradients(xs)));
    check_equal("W", W.grad(), Array<S>({2, 2}, gradients(ws)));
    check_equal("b", b.grad(), Array<S>({2}, gradients(bs)));

    const Gradcheck nudged = gradcheck(
        [](const std::vector<Tensor64>& in) {
            auto y = matmul(in[0], in[1]) + in[2];
            return sum(y * y) / 8;
        },
        {Array<double>({3, 2}, {1, 2, 3, 4, 5, 6}), Array<double>({2, 2}, {1, 0, -1, 3}),
         Array<double>({2}, {0.5, -0.5})});
    check("finite differences agree, in double", nudged.ok, nudged.ok ? "" : nudged.report);
}

int main(int argc, char** argv) {
    return run(argc, argv, {.number = 3, .slug = "arrays", .title = "arrays", .minutes = 15, .steps = 6},
               arrays<float>, arrays<double>);
}
