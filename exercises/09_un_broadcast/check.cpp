// The answer and the check of exercise un-broadcast.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
Matrix un_broadcast(const Matrix& dy, int rows, int columns) {
    Matrix gradient(rows, columns);
    for (int i = 0; i < dy.rows; ++i)
        for (int j = 0; j < dy.columns; ++j)
            gradient.at(rows == 1 ? 0 : i, columns == 1 ? 0 : j) += dy.at(i, j);
    return gradient;
}
}  // namespace right

#include "09_un_broadcast.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const Matrix& dy, int rows, int columns) {
        look.with("an operand of " + Matrix(rows, columns).shape() + ", with a result of " + dy.shape());
        Matrix given(0, 0);
        if (!look.runs([&] { given = yours.un_broadcast(dy, rows, columns); })) return;
        if (look.holds(given.rows == rows && given.columns == columns,
                       "your gradient has the shape " + given.shape()))
            look.equal("gradient", given.values, right::un_broadcast(dy, rows, columns).values);
    };
    const Matrix dy(2, 3, {1, 2, 3, 10, 20, 30});
    look_at(dy, 1, 3);
    look_at(dy, 2, 1);
    look_at(dy, 1, 1);
    look_at(dy, 2, 3);
    for (int draw = 0; draw < 4; ++draw) {
        const int rows = look.whole(1, 5), columns = look.whole(1, 5);
        const Matrix random(rows, columns, look.uniforms(static_cast<std::size_t>(rows * columns)));
        look_at(random, draw % 2 == 0 ? 1 : rows, draw < 2 ? 1 : columns);
    }
}

const exercise::Add add(
    {.title = "the mirror image of broadcasting",
     .minutes = 5,
     .lesson = "arrays",
     .hints = {"Which number of the operand did forward use for row i and column j of the result?",
               "Forward used one number of the operand for row i and column j of the result: dy.at(i, j) "
               "contributes to the gradient of this number. If the operand has only one row, forward used "
               "row 0 for every i. If the operand has only one column, forward used column 0 for every j.",
               "For dy.at(i, j), use row 0 of the operand's gradient if the operand has only one row, and "
               "row i otherwise. Choose the column in the same way. Add dy.at(i, j) to the number in this "
               "row and column."},
     .why = "A broadcast uses a number several times, so its backward function adds up all contributions to "
            "the gradient of this number. The function sums over each axis that was repeated, and does not "
            "divide the sum."},
    examine, answers);

}  // namespace
