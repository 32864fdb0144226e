// The answer and the check of exercise divide.
#include "given.hpp"

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

#include "05_divide.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
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
    {.title = "the full batch's gradient from micro-batches",
     .minutes = 5,
     .lesson = "divide",
     .hints = {"The code adds up the gradients of three means, each over two rows. How do you get the mean "
               "over all six rows from these three means?",
               "Each micro-batch's loss is too large when backward() starts. Make the loss smaller in the "
               "line that computes it. The divisor depends on the number of micro-batches.",
               "x has x.shape()[0] rows, so there are x.shape()[0] / size micro-batches. Divide each loss by "
               "this number before backward()."},
     .why =
         "The mean over all rows is the mean of the micro-batches' means if all micro-batches have the same "
         "size. backward() adds up gradients, so you divide each loss by the number of micro-batches first."},
    examine, answers);

}  // namespace
