// The answer and the check of exercise unequal.
#include "given.hpp"

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

#include "05_unequal.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
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
    {.title = "micro-batches of unequal sizes",
     .minutes = 5,
     .lesson = "unequal",
     .hints = {"In a micro-batch's own mean each row counts 1 / (its rows). In the whole mean it must count "
               "1 / (all rows). What factor lies between?",
               "Count all rows first, in a loop of its own. Then a micro-batch of b rows out of B has the "
               "weight b / B. Mind that b / B of whole numbers is 0.",
               "Multiply each loss by a double: its rows, converted to double, divided by all rows. (Or take "
               "sum() instead of mean(), and divide by all rows.)"},
     .why = "A mean of means is the mean only where the parts are equally large. With weights b_k / B, or "
            "with sums that are divided once by the number of all rows, each row counts the same, however "
            "they were cut."},
    examine, answers);

}  // namespace
