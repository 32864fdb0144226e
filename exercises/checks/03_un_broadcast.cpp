// Exercise 3, un-broadcast: the answer, the mistakes that are known, and the check.
#include "03_un_broadcast.hpp"

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

namespace set_instead_of_add {
Matrix un_broadcast(const Matrix& dy, int rows, int columns) {
    Matrix gradient(rows, columns);
    for (int i = 0; i < dy.rows; ++i)
        for (int j = 0; j < dy.columns; ++j)
            gradient.at(rows == 1 ? 0 : i, columns == 1 ? 0 : j) = dy.at(i, j);
    return gradient;
}
}  // namespace set_instead_of_add

namespace first_one_only {
Matrix un_broadcast(const Matrix& dy, int rows, int columns) {
    Matrix gradient(rows, columns);
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) gradient.at(i, j) = dy.at(i, j);
    return gradient;
}
}  // namespace first_one_only

namespace mean_instead_of_sum {
Matrix un_broadcast(const Matrix& dy, int rows, int columns) {
    Matrix gradient(rows, columns);
    const double uses = static_cast<double>(dy.rows * dy.columns) / (rows * columns);
    for (int i = 0; i < dy.rows; ++i)
        for (int j = 0; j < dy.columns; ++j)
            gradient.at(rows == 1 ? 0 : i, columns == 1 ? 0 : j) += dy.at(i, j) / uses;
    return gradient;
}
}  // namespace mean_instead_of_sum

namespace straight_through {
Matrix un_broadcast(const Matrix& dy, int rows, int columns) {
    Matrix gradient(rows, columns);
    for (int i = 0; i < dy.rows; ++i)
        for (int j = 0; j < dy.columns; ++j) gradient.at(i, j) += dy.at(i, j);
    return gradient;
}
}  // namespace straight_through

namespace rows_only {
Matrix un_broadcast(const Matrix& dy, int rows, int columns) {
    Matrix gradient(rows, columns);
    for (int i = 0; i < dy.rows; ++i)
        for (int j = 0; j < dy.columns; ++j) gradient.at(rows == 1 ? 0 : i, j) += dy.at(i, j);
    return gradient;
}
}  // namespace rows_only

namespace the_shape_of_the_result {
Matrix un_broadcast(const Matrix& dy, int, int) { return dy; }
}  // namespace the_shape_of_the_result

struct Functions {
    decltype(&::un_broadcast) un_broadcast;
};

void examine(exercise::Look& look, const Functions& yours) {
    const auto look_at = [&](const Matrix& dy, int rows, int columns) {
        look.with("an operand of " + Matrix(rows, columns).shape() + " in a result of " + dy.shape());
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
    {.number = 3,
     .slug = "un-broadcast",
     .title = "the mirror image of broadcasting",
     .minutes = 5,
     .lesson = "arrays",
     .functions = {"un_broadcast"},
     .hints =
         {"Which number of the operand did forward use for row i and column j of the result?",
          "Where the operand has a single row, forward took row 0 for every i; likewise for columns. The "
          "gradient goes where the number came from.",
          "The place is row (rows == 1 ? 0 : i), and the column likewise; add dy.at(i, j) there with +=."},
     .why = "Broadcasting uses a number several times, so its mirror image adds up: along each axis that was "
            "stretched there is a sum, and nothing is divided."},
    examine, Functions{right::un_broadcast},
    {{"set_instead_of_add",
      {set_instead_of_add::un_broadcast},
      "Of all contributions only the last one is left: the assignment has erased those before it. They add "
      "up."},
     {"first_one_only",
      {first_one_only::un_broadcast},
      "You have taken the first row or column only. The operand's number was used in all of them, and gets a "
      "part from each."},
     {"mean_instead_of_sum",
      {mean_instead_of_sum::un_broadcast},
      "This is the mean over the uses. Gradients add: a number that is used five times moves the result five "
      "times as much."},
     {"straight_through",
      {straight_through::un_broadcast},
      "You write at (i, j) also where the operand has no such row or column. A stretched axis has only one "
      "place, number 0."},
     {"rows_only",
      {rows_only::un_broadcast},
      "Right where the rows were stretched; where the columns were, you still write into columns that the "
      "operand does not have."},
     {"the_shape_of_the_result",
      {the_shape_of_the_result::un_broadcast},
      "You return the gradient as it came, in the result's shape. A gradient has the shape of the value that "
      "it belongs to."}});

}  // namespace
