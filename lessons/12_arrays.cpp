// Lesson 12: the gradient of a repeated array is a sum, and a product has one gradient per factor.
#include "course/kit/toy.hpp"

static Tensor array_of(const Shape& shape, const std::vector<real>& numbers) {
    return parameter(Array<real>(shape, numbers, options().device));
}

static std::vector<real> counted_up(int count, int first) {
    std::vector<real> all;
    for (int i = 0; i < count; ++i) all.push_back(real(first + i));
    return all;
}

static std::vector<Scalar> single_numbers(const Tensor& array) {
    std::vector<Scalar> all;
    for (const real number : array.value().to_vector()) all.push_back(parameter(double(number)));
    return all;
}

static std::vector<double> gradients_of(const std::vector<Scalar>& all) {
    std::vector<double> gradients;
    for (const Scalar& number : all) gradients.push_back(number.grad());
    return gradients;
}

LESSON(whole_number("items", "rows of X", 3, 3, 6)) {
    const int n = setting("items");
    const Tensor X = array_of({n, 2}, counted_up(2 * n, 1));
    const Tensor W = array_of({2, 2}, {1, 0, -1, 3});
    const Tensor b = array_of({2}, {0.5, -0.5});

    step("Here are three arrays. Their shapes are ({}, 2), (2, 2) and (2).", n);
    show("X", X, "W", W, "b", b);
    note("For the number in row i, column j of X W, multiply row i of X by column j of W, and add up.");

    step("b has the shape (2), and X W has the shape ({}, 2). So b is added to each row of X W.", n);
    code(2);
    const Tensor Y = matmul(X, W) + b;
    sum(Y).backward();
    show("X W + b", Y);
    graph("arrays", "sum(X W + b): every gradient has the shape of its value", [&](Picture& picture) {
        const Tensor x = parameter(X.value().clone()), w = parameter(W.value().clone()),
                     c = parameter(b.value().clone());
        picture.name(x, "X").name(w, "W").name(c, "b").backward(sum(matmul(x, w) + c), "sum(X W + b)");
    });

    ask("bias", "n", n);
    show("b.grad", b.grad(), "W.grad", W.grad(), "X.grad", X.grad());
    check_equal("b.grad: a 1 from each row", values(b.grad()), {n, n});
    check_equal("W.grad: the column sums of X", values(W.grad()),
                {1.0 * n * n, 1.0 * n * n, n * (n + 1.0), n * (n + 1.0)});

    step("Now we compute a product Y = X V. G is the gradient that backward() passes to Y.");
    const Tensor V = array_of({2, 4}, {1, -2, 0, 3, 2, 1, -1, 0});
    const Tensor six_rows = array_of({6, 4}, {1, 0, 2, -1, 0, 3, 1, 1, 2, -2, 0, 1,  //
                                              1, 0, 2, -1, 0, 3, 1, 1, 2, -2, 0, 1});
    const Array<real> G = slice(six_rows, 0, 0, n).value();
    X.zero_grad();
    code(1);
    matmul(X, V).backward(G);
    show("V", V, "G", G);
    note("X^T is X with its rows and columns exchanged. Its shape is (2, {}).", n);

    ask("product", "n", n);
    show("X.grad", X.grad(), "V.grad", V.grad());
    check_equal("V.grad = X^T G", V.grad(), matmul(X, Tensor(G), {.transpose_a = true}));
    check_equal("X.grad = G V^T", X.grad(), matmul(Tensor(G), V, {.transpose_b = true}));

    step("We multiply a column of shape (3, 1) by a vector of shape (3), element by element.");
    note("Broadcasting compares both shapes from the right: write one shape below the other.");
    note("An axis of size 1 and a missing axis are repeated. On every other axis, both sizes must be equal.");
    const Tensor column = array_of({3, 1}, {1, 2, 3}), vector = array_of({3}, {10, 20, 30});
    code(2);
    const Tensor outer = column * vector;
    sum(outer).backward();
    show("column", column, "vector", vector);

    ask("outer-shape");
    show("outer", outer, "vector.grad", vector.grad());
    check_equal("each number was multiplied by 1, 2 and 3", values(vector.grad()), {6, 6, 6});

    step("The product p q has three axes: p has the shape (2, 1, 3), and q has the shape (4, 1).");
    const Tensor p = array_of({2, 1, 3}, counted_up(6, 1)), q = array_of({4, 1}, {1, -1, 2, 3});
    code(1);
    const Tensor r = p * q;
    note("p consists of two matrices with one row and three columns. q is a column of four numbers.");

    ask("how-many");
    r.backward(Array<real>({2, 4, 3}, counted_up(24, 0), options().device));
    auto shapes = table({"", "shape", "elements", "shape of the gradient", "summed over"});
    shapes.row("p", to_string(p.shape()), 6, to_string(p.grad().shape()), "the middle axis");
    shapes.row("q", to_string(q.shape()), 4, to_string(q.grad().shape()), "the other axes");
    shapes.row("p q", to_string(r.shape()), r.value().size(), "", "");
    show("numbers of p.grad", values(p.grad()), "numbers of q.grad", values(q.grad()));
    check("the shapes of p and q", p.grad().shape() == p.shape() && q.grad().shape() == q.shape());

    step("The engine also computes with single numbers. Now the loss is the sum of the squares of X W + b.");
    for (const Tensor& array : {X, W, b}) array.zero_grad();
    code(1);
    sum(pow(matmul(X, W) + b, 2)).backward();
    const std::vector<Scalar> x = single_numbers(X), w = single_numbers(W), c = single_numbers(b);
    Scalar total = 0.0;
    code(3);
    for (std::size_t i = 0; i < x.size(); i += 2)
        for (std::size_t j = 0; j < 2; ++j) total = total + pow(x[i] * w[j] + x[i + 1] * w[2 + j] + c[j], 2);
    total.backward();
    show("W.grad", W.grad(), "numbers of W.grad, one by one", gradients_of(w));
    check_equal("W.grad", values(W.grad()), gradients_of(w));
    check_equal("X.grad", values(X.grad()), gradients_of(x));
}
