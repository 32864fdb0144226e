// Exercise 6, unequal: the answer, the mistakes that are known, and the check.
#include "06_unequal.hpp"

#include "check.hpp"
#include "toy.hpp"

namespace {

namespace right {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    double rows = 0;
    for (const Tensor& micro : micros) rows += static_cast<double>(micro.shape()[0]);
    for (const Tensor& micro : micros) {
        Tensor loss = mean(matmul(micro, w));
        (loss * (static_cast<double>(micro.shape()[0]) / rows)).backward();
    }
}
}  // namespace right

namespace mean_of_means {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros)
        (mean(matmul(micro, w)) / static_cast<double>(micros.size())).backward();
}
}  // namespace mean_of_means

namespace not_divided {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros) mean(matmul(micro, w)).backward();
}
}  // namespace not_divided

namespace sums_not_divided {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros) sum(matmul(micro, w)).backward();
}
}  // namespace sums_not_divided

namespace sums_by_micro_batches {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros)
        (sum(matmul(micro, w)) / static_cast<double>(micros.size())).backward();
}
}  // namespace sums_by_micro_batches

namespace size_of_the_first {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    const double rows = static_cast<double>(micros[0].shape()[0]) * static_cast<double>(micros.size());
    for (const Tensor& micro : micros) (sum(matmul(micro, w)) / rows).backward();
}
}  // namespace size_of_the_first

namespace whole_number_weight {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    long rows = 0;
    for (const Tensor& micro : micros) rows += micro.shape()[0];
    for (const Tensor& micro : micros)
        (mean(matmul(micro, w)) * static_cast<double>(micro.shape()[0] / rows)).backward();
}
}  // namespace whole_number_weight

namespace weight_upside_down {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    double rows = 0;
    for (const Tensor& micro : micros) rows += static_cast<double>(micro.shape()[0]);
    for (const Tensor& micro : micros)
        (mean(matmul(micro, w)) * (rows / static_cast<double>(micro.shape()[0]))).backward();
}
}  // namespace weight_upside_down

struct Functions {
    decltype(&::accumulate) accumulate;
};

void examine(exercise::Look& look, const Functions& yours) {
    const auto look_at = [&](const std::string& what, const Tensor& x, const Tensor& w,
                             const std::vector<int>& sizes) {
        look.with(what + ", cut as " + exercise::sizes_in_words(sizes));
        const auto wanted = exercise::full_gradient(x, w);
        if (look.runs([&] { yours.accumulate(exercise::cut(x, sizes), w); }))
            look.equal("w.grad", exercise::gradient_of(w), wanted);
    };
    for (const auto& sizes : {std::vector<int>{4, 2}, {2, 2, 2}, {1, 5}, {1, 2, 3}, {6}})
        look_at("the six rows", exercise::toy_rows(), exercise::toy_weight(), sizes);
    for (int draw = 0; draw < 4; ++draw) {
        std::vector<int> sizes;
        for (int part = look.whole(2, 5); part > 0; --part) sizes.push_back(look.whole(1, 7));
        const int columns = look.whole(1, 4);
        const Tensor x = exercise::random_rows(look, std::accumulate(sizes.begin(), sizes.end(), 0), columns);
        look_at("random numbers", x, exercise::random_weight(look, columns), sizes);
    }
}

const exercise::Add add(
    {.number = 6,
     .slug = "unequal",
     .title = "micro-batches of unequal sizes",
     .minutes = 5,
     .lesson = "unequal",
     .functions = {"accumulate"},
     .hints = {"In a micro-batch's own mean each row counts 1 / (its rows). In the whole mean it must count "
               "1 / (all rows). What factor lies between?",
               "Count all rows first, in a loop of its own. Then a micro-batch of b rows out of B has the "
               "weight b / B. Mind that b / B of whole numbers is 0.",
               "Multiply each loss by a double: its rows, converted to double, divided by all rows. (Or take "
               "sum() instead of mean(), and divide by all rows.)"},
     .why = "A mean of means is the mean only where the parts are equally large. With weights b_k / B, or "
            "with sums that are divided once by the number of all rows, each row counts the same, however "
            "they were cut."},
    examine, Functions{right::accumulate},
    {{"mean_of_means",
      {mean_of_means::accumulate},
      "Right for equal sizes, wrong for 4+2: this is a mean of means, and the rows of small micro-batches "
      "count too much."},
     {"not_divided",
      {not_divided::accumulate},
      "Each micro-batch brings its whole mean, and they are added: nothing was divided."},
     {"sums_not_divided",
      {sums_not_divided::accumulate},
      "Sums make each row count the same, which is half of the way. Now they must be divided, once, by the "
      "number of all rows."},
     {"sums_by_micro_batches",
      {sums_by_micro_batches::accumulate},
      "Sums make each row count the same, but they are divided by the number of micro-batches. It is the "
      "rows that must be counted."},
     {"size_of_the_first",
      {size_of_the_first::accumulate},
      "You have taken the first micro-batch's size for that of all. Count the rows of each."},
     {"whole_number_weight",
      {whole_number_weight::accumulate},
      "Your weight is a quotient of whole numbers, and 4 / 6 of whole numbers is 0. Make one of them a "
      "double."},
     {"weight_upside_down",
      {weight_upside_down::accumulate},
      "The weight is upside down: a micro-batch of b rows out of B weighs b / B, not B / b."}});

}  // namespace
