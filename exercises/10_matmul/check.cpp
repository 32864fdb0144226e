// The answer and the check of exercise matmul.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy) {
    return {product(dy, transposed(b)), product(transposed(a), dy)};
}
}  // namespace right

#include "10_matmul.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const Matrix& a, const Matrix& b, const Matrix& dy) {
        look.with(a.shape() + " times " + b.shape());
        Gradients given{Matrix(0, 0), Matrix(0, 0)};
        if (!look.runs([&] { given = yours.matmul_backward(a, b, dy); })) return;
        const Gradients wanted = right::matmul_backward(a, b, dy);
        const auto compare = [&](const char* name, const Matrix& mine, const Matrix& theirs) {
            if (look.holds(mine.shape() == theirs.shape(),
                           std::string("your gradient of ") + name + " has the shape " + mine.shape()))
                look.equal(std::string("d") + name, mine.values, theirs.values);
        };
        compare("a", given.a, wanted.a);
        compare("b", given.b, wanted.b);
    };
    look_at({2, 2, {1, 2, 3, 4}}, {2, 2, {5, 6, 7, 8}}, {2, 2, {1, 10, 100, 1000}});
    look_at({1, 2, {1, 2}}, {2, 1, {3, 4}}, {1, 1, {1}});
    for (int draw = 0; draw < 4; ++draw) {
        const int m = look.whole(1, 4), k = look.whole(1, 4), n = look.whole(1, 4);
        const auto random = [&](int rows, int columns) {
            return Matrix(rows, columns, look.uniforms(static_cast<std::size_t>(rows * columns)));
        };
        const Matrix a = random(m, k), b = random(k, n);
        look_at(a, b, random(m, n));
    }
}

const exercise::Add add(
    {.title = "the two gradients of a matrix product",
     .minutes = 10,
     .lesson = "arrays",
     .hints = {"In y = a b, the number in row i and column l of a grows by a small h. Which numbers of y "
               "change, and by how much does each of them change?",
               "The gradient of a has as many rows as dy, and the gradient of b has as many columns as dy. "
               "These shapes tell you whether dy is the left or the right factor of each gradient. The other "
               "factor is a transposed operand.",
               "For y = a b with the gradient dy, the gradient of a is dy times the transposed b. The "
               "gradient of b is the transposed a times dy."},
     .why = "In y = a b, if one number of a grows by h, one row of y grows by h times a row of b. Therefore, "
            "the gradient of a is dy times the transposed b. The gradient of b is the transposed a times dy. "
            "The gradient of b is a sum over the rows of the batch, and accumulation adds the rows of the "
            "next micro-batch to this sum."},
    examine, answers);

}  // namespace
