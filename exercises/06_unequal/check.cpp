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

#include "06_unequal.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& what, const Tensor& x, const Tensor& w,
                             const std::vector<int>& sizes) {
        look.with(what + ", split as " + exercise::sizes_in_words(sizes));
        const auto wanted = exercise::full_gradient(x, w);
        if (look.runs([&] { yours.accumulate(exercise::cut(x, sizes), w); }))
            look.equal("w.grad", exercise::gradient_of(w), wanted);
    };
    for (const auto& sizes : {std::vector<int>{4, 2}, {2, 2, 2}, {1, 5}, {1, 2, 3}, {6}})
        look_at("the six rows", exercise::toy_rows(), exercise::toy_weight(), sizes);
    // With 7 of 12 rows, two integer divisions give different weights: 7 / 12 is 0, and 7 / 6 is 1.
    const Tensor twelve = exercise::random_rows(look, 12, 3);
    look_at("random numbers", twelve, exercise::random_weight(look, 3), {7, 5});
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
     .hints =
         {"In the mean of its micro-batch, a row has the weight 1 / (number of rows in the micro-batch). In "
          "the mean over all rows, its weight must be 1 / (number of all rows). Which factor turns the first "
          "weight into the second?",
          "Count all rows first, in a separate loop. Then change the line with backward(): the weight of a "
          "micro-batch is one number of rows divided by another number of rows. The quotient of the integers "
          "4 and 6 is 0 in C++.",
          "If a micro-batch has b of all B rows, its weight is b / B. Convert b to double first, and "
          "multiply the loss of each micro-batch by its weight. (Or use sum() instead of mean(), and divide "
          "each loss by B.)"},
     .why = "A mean of means is the mean over all rows only if all micro-batches have the same size. If a "
            "micro-batch with b of all B rows has the weight b / B, each row has the same weight 1 / B."},
    examine, answers);

}  // namespace
