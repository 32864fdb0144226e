// Exercise 4, matmul: the answer, the mistakes that are known, and the check.
#include "04_matmul.hpp"

#include "check.hpp"

namespace {

namespace right {
Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy) {
    return {product(dy, transposed(b)), product(transposed(a), dy)};
}
}  // namespace right

namespace nothing_transposed {
Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy) {
    return {product(dy, b), product(a, dy)};
}
}  // namespace nothing_transposed

namespace wrong_side {
Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy) {
    return {product(transposed(b), dy), product(dy, transposed(a))};
}
}  // namespace wrong_side

namespace exchanged {
Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy) {
    return {product(transposed(a), dy), product(dy, transposed(b))};
}
}  // namespace exchanged

namespace dy_transposed {
Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy) {
    return {product(b, transposed(dy)), product(transposed(dy), a)};
}
}  // namespace dy_transposed

namespace other_operand_missing {
Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix& dy) {
    return {product(dy, transposed(b)), product(transposed(b), dy)};
}
}  // namespace other_operand_missing

namespace operands_themselves {
Gradients matmul_backward(const Matrix& a, const Matrix& b, const Matrix&) { return {b, a}; }
}  // namespace operands_themselves

struct Functions {
    decltype(&::matmul_backward) matmul_backward;
};

void examine(exercise::Look& look, const Functions& yours) {
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
    {.number = 4,
     .slug = "matmul",
     .title = "the two gradients of a matrix product",
     .minutes = 10,
     .lesson = "arrays",
     .functions = {"matmul_backward"},
     .hints = {"If a[i][l] grows by a little h, which numbers of y change, and by how much each?",
               "da has a row for each row of dy, and db a column for each column of dy: that says on which "
               "side dy stands.",
               "da is dy times b transposed, and db is a transposed times dy."},
     .why = "a[i][l] moves y[i][j] by b[l][j], for every j: so da[i][l] is the sum over j of dy[i][j] "
            "b[l][j], a product with b transposed. For db likewise. In accumulation it is the second one "
            "that adds up row after row: aT dy is a sum over the rows of the batch."},
    examine, Functions{right::matmul_backward},
    {{"nothing_transposed",
      {nothing_transposed::matmul_backward},
      "Nothing is transposed: dy b and a dy fit square matrices only. da[i][l] needs b[l][j] for all j: a "
      "row of b."},
     {"wrong_side",
      {wrong_side::matmul_backward},
      "The right factors on the wrong side: dy must stand where its rows meet those of a, and its columns "
      "those of b."},
     {"exchanged",
      {exchanged::matmul_backward},
      "Both products are right, but they are exchanged: da and db have changed places."},
     {"dy_transposed",
      {dy_transposed::matmul_backward},
      "These are the right gradients, transposed. Either dy was transposed instead of the operand, or the "
      "two factors are exchanged as well."},
     {"other_operand_missing",
      {other_operand_missing::matmul_backward},
      "da is right. For db you have used b again: the gradient of b is made of the other operand, a."},
     {"operands_themselves",
      {operands_themselves::matmul_backward},
      "You return the other operand, as if dy were 1. That is the derivative of a product of two numbers "
      "before dy has come; the chain rule multiplies by dy."}});

}  // namespace
