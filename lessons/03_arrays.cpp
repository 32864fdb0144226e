// Lesson 3: arrays. What was repeated is summed on the way back, and a product has two gradients.
#include <numeric>

#include "tally/lesson/talk.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct Arrays {
    const Device device = options().device;
    Tensor X = parameter(Array<real>({3, 2}, {1, 2, 3, 4, 5, 6}, device));
    Tensor W = parameter(Array<real>({2, 2}, {1, 0, -1, 3}, device));
    Tensor b = parameter(Array<real>({2}, {0.5, -0.5}, device));

    void talk() {
        step("A bias b of shape (2), added to X W of shape (3, 2): once in each row.");
        code(2);
        auto Y = matmul(X, W) + b;
        auto loss = sum(Y);
        show("X", X);
        show("W", W);
        show("b", b);
        show("X W + b", Y);
        graph("arrays", "sum(X W + b): the gradient has the shape of its value, everywhere", [](Picture& p) {
            const Arrays own;
            p.name(own.X, "X").name(own.W, "W").name(own.b, "b");
            p.backward(sum(matmul(own.X, own.W) + own.b), "sum(X W + b)");
        });

        predict("The loss is the sum of all six numbers. b.grad is",
                {right("[3 3]"), wrong("[1 1]", "So much one row sends. How many rows use b?"),
                 wrong("[1/3 1/3]", "A mean would divide. The loss is a sum."),
                 wrong("3 x 2 ones", "A gradient has the shape of its value, and b has two numbers.")},
                hint("How many rows use b?", "b's first number stands in every row's first sum."),
                "Three rows use b, so three gradients arrive, and they add (lesson 2).");
        loss.backward();
        show("b.grad", b.grad());
        show("W.grad", W.grad());
        show("X.grad", X.grad());
        check_equal("the loss, row by row: 5 + 11 + 17", loss.item(), real(5 + 11 + 17));
        check_equal("b: a 1 from each of three rows", b.grad(), Array<real>({2}, {3, 3}));
        check_equal("W: the column sums of X", W.grad(), Array<real>({2, 2}, {9, 9, 12, 12}));
        check_equal("X: the row sums of W", X.grad(), Array<real>({3, 2}, {1, 2, 1, 2, 1, 2}));

        step("Any product Y = X V with any G arriving at Y: dX = G V^T and dV = X^T G.");
        auto V = parameter(Array<real>({2, 4}, {1, -2, 0, 3, 2, 1, -1, 0}, device));
        const Array<real> G({3, 4}, {1, 0, 2, -1, 0, 3, 1, 1, 2, -2, 0, 1}, device);
        note("V = " + in_rows(V.value()) + ", G = " + in_rows(G) + ".");
        X.zero_grad();
        code(1);
        matmul(X, V).backward(G);
        show("X.grad", X.grad());
        show("V.grad", V.grad());
        note("Three different sizes, 3, 2 and 4: here only the right transpose fits.");
        check_equal("X: by hand", X.grad(), Array<real>({3, 2}, {-2, 0, -3, 2, 9, 2}));
        check_equal("V: by hand", V.grad(), Array<real>({2, 4}, {11, -1, 5, 7, 14, 0, 8, 8}));

        predict(
            "A column of shape (3, 1) times a vector of shape (3). The result has shape",
            {right("(3, 3)"),
             wrong("(3)",
                   "Aligned at the right, the column's 1 stands over the vector's 3, its 3 over nothing."),
             wrong("(3, 1)", "The axis of 1 is the one that is repeated."),
             wrong("an error", "An axis of 1, or none, fits any size.")},
            hint("Which axes stand over each other, if one begins at the right?",
                 "Write (3, 1) over (3), flush right; a 1 or a blank takes the other's size."),
            "Shapes are aligned at the right; an axis of 1, or none, is repeated.");
        auto column = parameter(Array<real>({3, 1}, {1, 2, 3}, device));
        auto vector = parameter(Array<real>({3}, {10, 20, 30}, device));
        code(2);
        auto outer = column * vector;
        sum(outer).backward();
        show("outer", outer);
        show("vector.grad", vector.grad());
        check_equal("nine numbers", outer, Array<real>({3, 3}, {10, 20, 30, 20, 40, 60, 30, 60, 90}));
        check_equal("each met 1, 2 and 3: 1 + 2 + 3", vector.grad(), Array<real>({3}, {6, 6, 6}));

        predict("p of shape (2, 1, 3) times q of shape (4, 1): how many numbers has p q?",
                {right(24), wrong(6, "So many has p. Its axis of 1 is repeated."),
                 wrong(10, "They are multiplied, each with each that it meets, not put side by side."),
                 wrong(12, "q has no axis where p has its 2: it is repeated there."),
                 wrong(8, "q's axis of 1 is repeated too: p has 3 there.")},
                hint("What does each of the three axes become?", "(2, 1, 3) over (4, 1), flush right."),
                "2 x 4 x 3. p is repeated along one axis, q along two.");
        auto p = parameter(Array<real>({2, 1, 3}, {1, 2, 3, 4, 5, 6}, device));
        auto q = parameter(Array<real>({4, 1}, {1, -1, 2, 3}, device));
        std::vector<real> arriving(24);  // 0, 1, 2, ... 23
        std::iota(arriving.begin(), arriving.end(), real(0));
        code(2);
        auto r = p * q;
        r.backward(Array<real>({2, 4, 3}, arriving, device));
        auto shapes = table({"", "shape", "numbers", "its gradient", "summed over"});
        shapes.row("p", to_string(p.shape()), p.value().size(), to_string(p.grad().shape()),
                   "the middle axis");
        shapes.row("q", to_string(q.shape()), q.value().size(), to_string(q.grad().shape()),
                   "the first and the last");
        shapes.row("p q", to_string(r.shape()), r.value().size(), "-", "");
        check("gradient shape = value shape", p.grad().shape() == p.shape() && q.grad().shape() == q.shape());
        check_equal("p: by hand", p.grad(), Array<real>({2, 1, 3}, {36, 41, 46, 96, 101, 106}));
        check_equal("q: by hand", q.grad(), Array<real>({4, 1}, {205, 268, 331, 394}));

        step("The same engine on twelve single numbers: loss = sum(Y Y) / 8 in a loop.");
        const std::vector<Scalar> xs = singles(X.value()), ws = singles(W.value()), bs = singles(b.value());
        Scalar total = real(0);
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
        check_one_by_one(gradients(xs), gradients(ws), gradients(bs));
    }

    // ---- the tools: text, and numbers as a table or a check wants them ---------------------------------

    static std::vector<Scalar> singles(const Array<real>& array) {
        std::vector<Scalar> all;
        for (const real number : array.to_vector()) all.push_back(parameter(number));
        return all;
    }

    static std::vector<real> gradients(const std::vector<Scalar>& all) {
        std::vector<real> numbers;
        for (const auto& single : all) numbers.push_back(single.grad());
        return numbers;
    }

    // A matrix of whole numbers, row by row.
    static std::string in_rows(const Array<real>& matrix) {
        const std::vector<real> numbers = matrix.to_vector();
        const auto width = static_cast<std::size_t>(matrix.shape()[1]);
        std::string text;
        for (std::size_t i = 0; i < numbers.size(); ++i)
            text += (i == 0 ? "(" : i % width == 0 ? "; " : " ") + std::to_string(std::lround(numbers[i]));
        return text + ")";
    }

    // ---- the witness ----------------------------------------------------------------------------------------

    using Numbered = std::vector<real>;
    void check_one_by_one(const Numbered& to_X, const Numbered& to_W, const Numbered& to_b) const {
        check_equal("X", X.grad(), Array<real>({3, 2}, to_X));
        check_equal("W", W.grad(), Array<real>({2, 2}, to_W));
        check_equal("b", b.grad(), Array<real>({2}, to_b));
        const Gradcheck nudged = gradcheck(
            [](const std::vector<Tensor64>& in) {
                auto y = matmul(in[0], in[1]) + in[2];
                return sum(y * y) / 8;
            },
            {Array<double>({3, 2}, {1, 2, 3, 4, 5, 6}), Array<double>({2, 2}, {1, 0, -1, 3}),
             Array<double>({2}, {0.5, -0.5})});
        check("finite differences agree, in double", nudged.ok, nudged.ok ? "" : nudged.report);
    }
};

const Given<Arrays> lesson({.number = 3, .slug = "arrays", .title = "arrays", .minutes = 15, .steps = 6});

}  // namespace
