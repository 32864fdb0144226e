// The answer and the check of exercise two-passes.
#include "given.hpp"

#include "check.hpp"
#include "toy.hpp"

namespace {

namespace right {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    std::vector<Tensor> parts;
    {
        const NoGrad off;
        for (const Tensor& micro : micros) parts.push_back(encode(micro, w));
    }
    Tensor z = parameter(concat(parts, 0).value());
    loss_of_all(z).backward();
    std::int64_t from = 0;
    for (const Tensor& micro : micros) {
        const std::int64_t to = from + micro.shape()[0];
        Tensor owed = slice(constant(z.grad()), 0, from, to);
        sum(encode(micro, w) * owed).backward();
        from = to;
    }
}
}  // namespace right

#include "20_two_passes.mistakes.hpp"

Tensor weight(exercise::AnswerTest& look, int columns, int hidden) {
    return parameter(exercise::random_rows(look, columns, hidden).value());
}

double bytes_beyond(const std::function<void()>& backward) {
    const auto before = memory::in_use();
    memory::reset_peak();
    backward();
    return static_cast<double>(memory::peak() - before);
}

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& what, const Tensor& x, const Tensor& w,
                             const std::vector<int>& sizes, bool measured) {
        look.with(what + ", cut as " + exercise::sizes_in_words(sizes));
        const auto micros = exercise::cut(x, sizes);
        all_graphs_at_once::accumulate(micros, w);
        const auto wanted = exercise::gradient_of(w);
        w.zero_grad();
        const double least = bytes_beyond([&] { right::accumulate(micros, w); });
        w.zero_grad();
        double bytes = 0;
        if (!look.runs([&] { bytes = bytes_beyond([&] { yours.accumulate(micros, w); }); })) return;
        if (look.equal("w.grad", exercise::gradient_of(w), wanted, 1e-4) && measured)
            look.at_most("bytes at the peak", bytes, 1.25 * least);
    };
    look_at("the six rows", exercise::toy_rows(), weight(look, 3, 4), {6}, false);
    look_at("the six rows", exercise::toy_rows(), weight(look, 3, 4), {3, 3}, false);
    look_at("the six rows", exercise::toy_rows(), weight(look, 3, 4), {1, 3, 2}, false);
    const Tensor x = exercise::random_rows(look, 24, 3);
    look_at("24 random rows, an encoder with 1024 hidden numbers", x, weight(look, 3, 1024), {6, 6, 6, 6},
            true);
}

const exercise::Add add(
    {.title = "an exact contrastive loss, with the graph of one micro-batch at a time",
     .minutes = 15,
     .lesson = "contrastive",
     .hints =
         {"Which numbers of the other micro-batches does a micro-batch need before its backward pass?",
          "The loop over the micro-batches becomes two loops, with one backward of the loss between them. "
          "z.grad(), the gradient of the loss for all representations z, has one row for each item. Count "
          "the rows of the micro-batches to find the first row of each micro-batch.",
          "First loop, in a block with NoGrad: collect the representations in a vector. Make their "
          "concat() a parameter z, and call backward on the loss of z. Second loop: multiply the new "
          "representations by the micro-batch's slice of z.grad(), a constant, and call backward on the "
          "sum of the products."},
     .why = "Micro-batches exchange the representations, two numbers for each item, but no graphs. The "
            "price is one more forward pass of each micro-batch, and the gradient is exact. tally's "
            "function add_cached() computes this exact gradient for any encoder."},
    examine, answers);

}  // namespace
