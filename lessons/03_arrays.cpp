// Lesson 3: the gradient of a repeated array is a sum, and a product of arrays has one gradient per factor.
#include <numeric>

#include "course/kit/talk.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct Arrays {
    const Device device = options().device;
    const int n = setting("items");  // rows of X
    const std::vector<std::int64_t> weights = setting("values");
    Tensor X = parameter(Array<real>({n, 2}, counted_up(2 * n), device));
    Tensor W = parameter(Array<real>({2, 2}, std::vector<real>(weights.begin(), weights.end()), device));
    Tensor b = parameter(Array<real>({2}, {0.5, -0.5}, device));

    void talk() {
        step("Arrays with their shapes: so many rows, so many columns. A bias b has one axis.");
        show("X", X);
        show("W", W);
        show("b", b);
        note(
            "The product X W has in row i, column j: row i of X times column j of W, number by number, "
            "added up.");

        step(say("b of shape (2) is added to X W of shape ({}, 2): once in each row.", n));
        code(3);
        auto Y = matmul(X, W) + b;
        auto loss = sum(Y);
        loss.backward();
        show("X W + b", Y);
        graph("arrays", "sum(X W + b): the gradient has the shape of its value, everywhere",
              [this](Picture& p) { drawn(p); });

        predict(
            say("The loss is the sum of {} numbers. b.grad is", n == 1 ? "both" : "all " + to_text(2 * n)),
            b_options(), hint("How many rows use b?", "b's first number stands in every row's first sum."),
            n == 1 ? "The one row uses b once."
                   : say("{} rows use b, so {} gradients arrive, and they add (lesson 2).",
                         capital(to_text(n)), to_text(n)));
        show("b.grad", b.grad());
        show("W.grad", W.grad());
        show("X.grad", X.grad());
        check_sums(loss.item());

        step("Any product Y = X V, and any G that arrives at Y.");
        auto V = parameter(Array<real>({2, 4}, {1, -2, 0, 3, 2, 1, -1, 0}, device));
        const Array<real> G({n, 4}, arriving(4 * n), device);
        code(2);
        X.zero_grad();
        matmul(X, V).backward(G);
        show("V", V);
        show("G", G);

        predict(
            say("V has the shape (2, 4), X ({}, 2) and G ({}, 4). V.grad is", n, n),
            {right("X^T G"),
             wrong("G X^T", say("({}, 4) times (2, {}): the inner sizes must be the same.", n, n)),
             wrong("G V^T", "That has the shape of X: it is the gradient of X."),
             wrong("X G", n == 2 ? "It fits, as X is square. But each row of X goes with the same row of G."
                                 : say("({}, 2) times ({}, 4): the inner sizes must be the same.", n, n))},
            hint("Which of them has V's shape, (2, 4)?",
                 "^T exchanges rows and columns. The inner sizes must meet, the outer ones stay."),
            "V's numbers were used in all rows of X: these are added up. X.grad is G V^T.");
        show("X.grad", X.grad());
        show("V.grad", V.grad());
        check_product(V, G);

        step("A column of shape (3, 1) times a vector of shape (3), number by number.");
        auto column = parameter(Array<real>({3, 1}, {1, 2, 3}, device));
        auto vector = parameter(Array<real>({3}, {10, 20, 30}, device));
        code(2);
        auto outer = column * vector;
        sum(outer).backward();
        show("column", column);
        show("vector", vector);

        predict(
            "The result has the shape",
            {right("(3, 3)"),
             wrong("(3)",
                   "Aligned at the right, the column's 1 stands over the vector's 3, its 3 over nothing."),
             wrong("(3, 1)", "The axis of 1 is the one that is repeated."),
             wrong("an error", "An axis of 1, or none, fits any size.")},
            hint("Which axes stand over each other, if one begins at the right?",
                 "Write (3, 1) over (3), flush right; a 1 or a blank takes the other's size."),
            "Shapes are aligned at the right; an axis of 1, or none, is repeated.");
        show("outer", outer);
        show("vector.grad", vector.grad());
        check_equal("nine numbers", outer, Array<real>({3, 3}, {10, 20, 30, 20, 40, 60, 30, 60, 90}));
        check_equal("each met 1, 2 and 3: 1 + 2 + 3", vector.grad(), Array<real>({3}, {6, 6, 6}));

        step("Three axes: p of shape (2, 1, 3) times q of shape (4, 1).");
        auto p = parameter(Array<real>({2, 1, 3}, {1, 2, 3, 4, 5, 6}, device));
        auto q = parameter(Array<real>({4, 1}, {1, -1, 2, 3}, device));
        code(1);
        auto r = p * q;
        note("p is two matrices of one row and three columns; q a column of four numbers.");

        predict("How many numbers has p q?",
                {right(24), wrong(6, "So many has p. Its axis of 1 is repeated."),
                 wrong(10, "They are multiplied, each with each that it meets, not put side by side."),
                 wrong(12, "q has no axis where p has its 2: it is repeated there."),
                 wrong(8, "q's axis of 1 is repeated too: p has 3 there.")},
                hint("What does each of the three axes become?", "(2, 1, 3) over (4, 1), flush right."),
                "2 x 4 x 3. p is repeated along one axis, q along two.");
        r.backward(Array<real>({2, 4, 3}, counted_up(24, 0), device));
        auto shapes = table({"", "shape", "numbers", "its gradient", "summed over"});
        shapes.row("p", to_string(p.shape()), p.value().size(), to_string(p.grad().shape()),
                   "the middle axis");
        shapes.row("q", to_string(q.shape()), q.value().size(), to_string(q.grad().shape()),
                   "the first and the last");
        shapes.row("p q", to_string(r.shape()), r.value().size(), "-", "");
        check("gradient shape = value shape", p.grad().shape() == p.shape() && q.grad().shape() == q.shape());
        check_equal("p: by hand", p.grad(), Array<real>({2, 1, 3}, {36, 41, 46, 96, 101, 106}));
        check_equal("q: by hand", q.grad(), Array<real>({4, 1}, {205, 268, 331, 394}));

        step(say("The same engine on {} single numbers: loss = sum(Y Y) / 8 in a loop.", to_text(2 * n + 6)));
        const std::vector<Scalar> xs = singles(X.value()), ws = singles(W.value()), bs = singles(b.value());
        Scalar total = real(0);
        for (std::size_t i = 0; i < std::size_t(n); ++i)
            for (std::size_t j = 0; j < 2; ++j) {
                if (i + j == 0) code(2);
                auto y = xs[2 * i] * ws[j] + xs[2 * i + 1] * ws[2 + j] + bs[j];
                total = total + y * y;
            }
        (total / 8).backward();

        X.zero_grad(), W.zero_grad(), b.zero_grad();
        Y = matmul(X, W) + b;
        (sum(Y * Y) / 8).backward();
        auto both = table({"row", "X.grad", "one by one"});
        for (std::size_t i = 0; i < std::size_t(n); ++i)
            both.row(std::int64_t(i), row_of(X.grad().to_vector(), i), row_of(gradients(xs), i));
        check_one_by_one(gradients(xs), gradients(ws), gradients(bs));
    }

    std::vector<Option> b_options() const {
        std::vector<Option> all{
            right(say("[{} {}]", n, n)),
            wrong(say("{} x 2 ones", n), "A gradient has the shape of its value, and b has two numbers."),
            wrong("[1/2 1/2]", "No mean divides. The loss is a sum.")};
        if (n > 1) {
            all.push_back(wrong("[1 1]", "So much one row sends. How many rows use b?"));
            all[2] = wrong(say("[1/{} 1/{}]", n, n), "A mean would divide. The loss is a sum.");
        }
        return all;
    }

    void drawn(Picture& p) const {
        const Arrays own;
        p.name(own.X, "X").name(own.W, "W").name(own.b, "b");
        p.backward(sum(matmul(own.X, own.W) + own.b), "sum(X W + b)");
    }

    // ---- tools: arrays, tables and values for checks -------------------------------------------------

    static std::vector<real> counted_up(int count, real from = 1) {  // returns 1, 2, 3, ...
        std::vector<real> all(static_cast<std::size_t>(count));
        std::iota(all.begin(), all.end(), from);
        return all;
    }

    static std::vector<real> arriving(int count) {
        const std::vector<real> some{1, 0, 2, -1, 0, 3, 1, 1, 2, -2, 0, 1};  // repeats after 12 numbers
        std::vector<real> all;
        for (std::size_t i = 0; i < std::size_t(count); ++i) all.push_back(some[i % some.size()]);
        return all;
    }

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

    static std::vector<real> row_of(const std::vector<real>& two_columns, std::size_t row) {
        return {two_columns[2 * row], two_columns[2 * row + 1]};
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // All numbers are multiples of 1/2, so no operation rounds.
    void check_sums(real loss) const {
        const std::vector<double> x = values(X), w = values(W);
        double by_hand = 0;
        std::vector<double> to_W(4), to_X;
        for (std::size_t i = 0; i < std::size_t(n); ++i) {
            by_hand += x[2 * i] * (w[0] + w[1]) + x[2 * i + 1] * (w[2] + w[3]) + 0.5 - 0.5;
            to_X.insert(to_X.end(), {w[0] + w[1], w[2] + w[3]});
            to_W[0] += x[2 * i], to_W[1] += x[2 * i], to_W[2] += x[2 * i + 1], to_W[3] += x[2 * i + 1];
        }
        check_equal("the loss, row by row", loss, by_hand);
        if (!settings_changed()) check_equal("which is 5 + 11 + 17", loss, 5 + 11 + 17);
        check_equal("b: a 1 from each row", values(b.grad()), {double(n), double(n)});
        check_equal("W: the column sums of X", values(W.grad()), to_W);
        check_equal("X: the row sums of W", values(X.grad()), to_X);
    }

    // The gradient of X is G times the transpose of V. The gradient of V is the transpose of X times G.
    void check_product(const Tensor& V, const Array<real>& G) const {
        const std::vector<double> x = values(X), v = values(V), g = values(G);
        std::vector<double> to_X(x.size()), to_V(v.size());
        for (std::size_t i = 0; i < std::size_t(n); ++i)
            for (std::size_t k = 0; k < 2; ++k)
                for (std::size_t j = 0; j < 4; ++j) {
                    to_X[2 * i + k] += g[4 * i + j] * v[4 * k + j];
                    to_V[4 * k + j] += g[4 * i + j] * x[2 * i + k];
                }
        check_equal("X, in a loop", values(X.grad()), to_X);
        check_equal("V, in a loop", values(V.grad()), to_V);
        if (settings_changed()) return;
        check_equal("X: by hand", X.grad(), Array<real>({3, 2}, {-2, 0, -3, 2, 9, 2}));
        check_equal("V: by hand", V.grad(), Array<real>({2, 4}, {11, -1, 5, 7, 14, 0, 8, 8}));
    }

    using Numbered = std::vector<real>;
    void check_one_by_one(const Numbered& to_X, const Numbered& to_W, const Numbered& to_b) const {
        check_equal("X", X.grad(), Array<real>({n, 2}, to_X));
        check_equal("W", W.grad(), Array<real>({2, 2}, to_W));
        check_equal("b", b.grad(), Array<real>({2}, to_b));
        const auto nudged = gradcheck(
            [](const std::vector<Tensor64>& in) {
                auto y = matmul(in[0], in[1]) + in[2];
                return sum(y * y) / 8;
            },
            {Array<double>({n, 2}, values(X)), Array<double>({2, 2}, values(W)),
             Array<double>({2}, values(b))});
        check("finite differences agree, in double", nudged.ok, nudged.ok ? "" : nudged.report);
    }
};

const RegisterLesson<Arrays> lesson({.number = 3,
                                     .slug = "arrays",
                                     .title = "arrays",
                                     .minutes = 20,
                                     .steps = 10,
                                     .parameters = {
                                         whole_number("items", "rows of X", 3, 1, 6),
                                         several("values", "the four numbers of W", {1, 0, -1, 3}, -9, 9)}});

}  // namespace
