// Exercise 5, divide: the answer, the mistakes that are known, and the check.
#include "05_divide.hpp"

#include "check.hpp"
#include "toy.hpp"

namespace {

namespace right {
void accumulate(const Tensor& x, const Tensor& w, int size) {
    const int parts = static_cast<int>(x.shape()[0]) / size;
    for (const Tensor& micro : split(x, size)) {
        Tensor loss = mean(matmul(micro, w)) / parts;
        loss.backward();
    }
}
}  // namespace right

namespace not_divided {
void accumulate(const Tensor& x, const Tensor& w, int size) {
    for (const Tensor& micro : split(x, size)) mean(matmul(micro, w)).backward();
}
}  // namespace not_divided

namespace divided_by_rows {
void accumulate(const Tensor& x, const Tensor& w, int size) {
    for (const Tensor& micro : split(x, size)) (mean(matmul(micro, w)) / size).backward();
}
}  // namespace divided_by_rows

namespace divided_by_all_rows {
void accumulate(const Tensor& x, const Tensor& w, int size) {
    for (const Tensor& micro : split(x, size)) (mean(matmul(micro, w)) / x.shape()[0]).backward();
}
}  // namespace divided_by_all_rows

namespace always_three {
void accumulate(const Tensor& x, const Tensor& w, int size) {
    for (const Tensor& micro : split(x, size)) (mean(matmul(micro, w)) / 3).backward();
}
}  // namespace always_three

namespace only_the_last {
void accumulate(const Tensor& x, const Tensor& w, int size) {
    const int parts = static_cast<int>(x.shape()[0]) / size;
    Tensor loss;
    for (const Tensor& micro : split(x, size)) loss = mean(matmul(micro, w)) / parts;
    loss.backward();
}
}  // namespace only_the_last

namespace only_the_last_undivided {
void accumulate(const Tensor& x, const Tensor& w, int size) {
    for (const Tensor& micro : split(x, size)) {
        w.zero_grad();
        mean(matmul(micro, w)).backward();
    }
}
}  // namespace only_the_last_undivided

namespace sum_instead_of_mean {
void accumulate(const Tensor& x, const Tensor& w, int size) {
    for (const Tensor& micro : split(x, size)) sum(matmul(micro, w)).backward();
}
}  // namespace sum_instead_of_mean

struct Functions {
    decltype(&::accumulate) accumulate;
};

void examine(exercise::Look& look, const Functions& yours) {
    const auto look_at = [&](const Tensor& x, const Tensor& w, int size) {
        const auto right = exercise::full_gradient(x, w);
        if (look.runs([&] { yours.accumulate(x, w, size); }))
            look.equal("w.grad", exercise::gradient_of(w), right);
    };
    for (const int size : {2, 3, 6, 1}) {
        look.with("the six rows, " + std::to_string(size) + " in a micro-batch");
        look_at(exercise::toy_rows(), exercise::toy_weight(), size);
    }
    for (int draw = 0; draw < 4; ++draw) {
        const int size = look.whole(1, 5), parts = look.whole(2, 6), columns = look.whole(1, 4);
        look.with("random numbers, " + std::to_string(size * parts) + " rows, " + std::to_string(size) +
                  " in a micro-batch");
        const Tensor x = exercise::random_rows(look, size * parts, columns);
        look_at(x, exercise::random_weight(look, columns), size);
    }
}

const exercise::Add add(
    {.number = 5,
     .slug = "divide",
     .title = "the full batch's gradient from micro-batches",
     .minutes = 5,
     .lesson = "divide",
     .functions = {"accumulate"},
     .hints = {"Three means of two rows each are added up. What would the mean of these three means be?",
               "Each micro-batch's loss has to count less before it goes backward; how much less depends on "
               "how many micro-batches there are.",
               "There are x.shape()[0] rows in all, so there are x.shape()[0] / size micro-batches. Divide "
               "each loss by that number."},
     .why = "The mean over all rows is the mean of the micro-batches' means, as long as they are equally "
            "large. backward() adds, so each one must bring its N-th part: its loss is divided by N, the "
            "number of micro-batches, before it goes backward."},
    examine, Functions{right::accumulate},
    {{"not_divided",
      {not_divided::accumulate},
      "Nothing was divided: backward() has added up the micro-batches' means, so the result is as many times "
      "too large as there are micro-batches."},
     {"divided_by_rows",
      {divided_by_rows::accumulate},
      "You have divided by the number of rows in a micro-batch. The mean has done that already; what is "
      "missing is the number of micro-batches."},
     {"divided_by_all_rows",
      {divided_by_all_rows::accumulate},
      "You have divided by the number of all rows. The mean has already divided by those of its micro-batch, "
      "so they count twice."},
     {"always_three",
      {always_three::accumulate},
      "Right for the three micro-batches of the text, and for no other number of them: the 3 has to follow "
      "from the rows and `size`."},
     {"only_the_last",
      {only_the_last::accumulate},
      "Only the last micro-batch went backward; the losses of the others were thrown away. backward() "
      "belongs in the loop."},
     {"only_the_last_undivided",
      {only_the_last_undivided::accumulate},
      "This is the gradient of the last micro-batch alone: something clears the gradient between "
      "micro-batches, and what the others brought is lost."},
     {"sum_instead_of_mean",
      {sum_instead_of_mean::accumulate},
      "These are sums over the rows, where means are wanted: nobody has divided by the number of rows."}});

}  // namespace
