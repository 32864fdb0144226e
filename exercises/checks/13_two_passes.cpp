// Exercise 13, two passes: the answer, the mistakes that are known, and the check.
#include "13_two_passes.hpp"

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

namespace loss_of_each {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros) (loss_of_all(encode(micro, w)) / micros.size()).backward();
}
}  // namespace loss_of_each

namespace loss_of_each_undivided {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    for (const Tensor& micro : micros) loss_of_all(encode(micro, w)).backward();
}
}  // namespace loss_of_each_undivided

namespace all_graphs_at_once {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    std::vector<Tensor> parts;
    for (const Tensor& micro : micros) parts.push_back(encode(micro, w));
    loss_of_all(concat(parts, 0)).backward();
}
}  // namespace all_graphs_at_once

namespace divided_as_well {
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
        (sum(encode(micro, w) * owed) / micros.size()).backward();
        from = to;
    }
}
}  // namespace divided_as_well

namespace mean_instead_of_sum {
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
        mean(encode(micro, w) * owed).backward();
        from = to;
    }
}
}  // namespace mean_instead_of_sum

namespace first_rows_for_all {
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
        const std::int64_t to = micro.shape()[0];
        Tensor owed = slice(constant(z.grad()), 0, from, to);
        sum(encode(micro, w) * owed).backward();
    }
}
}  // namespace first_rows_for_all

namespace nothing_sent_back {
void accumulate(const std::vector<Tensor>& micros, const Tensor& w) {
    std::vector<Tensor> parts;
    {
        const NoGrad off;
        for (const Tensor& micro : micros) parts.push_back(encode(micro, w));
    }
    Tensor z = parameter(concat(parts, 0).value());
    loss_of_all(z).backward();
}
}  // namespace nothing_sent_back

struct Functions {
    decltype(&::accumulate) accumulate;
};

Tensor weight(exercise::Look& look, int columns, int hidden) {
    return parameter(exercise::random_rows(look, columns, hidden).value());
}

double bytes_beyond(const std::function<void()>& backward) {
    const auto before = memory::in_use();
    memory::reset_peak();
    backward();
    return static_cast<double>(memory::peak() - before);
}

void examine(exercise::Look& look, const Functions& yours) {
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
    look_at("24 random rows, 1024 numbers on their way", x, weight(look, 3, 1024), {6, 6, 6, 6}, true);
}

const exercise::Add add(
    {.number = 13,
     .slug = "two-passes",
     .title = "a contrastive loss, exact, one micro-batch's graph at a time",
     .minutes = 15,
     .lesson = "when-it-lies",
     .functions = {"accumulate"},
     .hints =
         {"Which numbers must a micro-batch know of the others before it can go backward?",
          "z.grad() has a row for each item. Keep count of where a micro-batch's rows begin and end in it.",
          "First loop: encode under NoGrad into a vector. Then a parameter from concat(...).value(), and "
          "backward. Second loop: the sum of encode(...) times the constant slice of z.grad(), backward."},
     .why = "What crosses between micro-batches is two numbers for an item, not a graph. The price is one "
            "more forward for each micro-batch; the gradient is that of the whole batch. add_cached() of the "
            "library does this for any encoder."},
    examine, Functions{right::accumulate},
    {{"loss_of_each",
      {loss_of_each::accumulate},
      "Each micro-batch is compared with itself only: fewer items to be compared with make another loss, "
      "however it is divided."},
     {"loss_of_each_undivided",
      {loss_of_each_undivided::accumulate},
      "Each micro-batch is compared with itself only, which is another loss; and nothing was divided "
      "either."},
     {"all_graphs_at_once",
      {all_graphs_at_once::accumulate},
      "The gradient is right, but the graphs of all micro-batches were alive at the same time: the memory is "
      "that of the full batch. The first pass wants a NoGrad, and a second one has to follow."},
     {"divided_as_well",
      {divided_as_well::accumulate},
      "You have divided by the number of micro-batches on the way back. The loss of all has done its "
      "dividing already: z.grad() is owed as it is."},
     {"mean_instead_of_sum",
      {mean_instead_of_sum::accumulate},
      "On the way back it must be sum(h * g), whose gradient for h is g. A mean divides by as many numbers "
      "as there are in h."},
     {"first_rows_for_all",
      {first_rows_for_all::accumulate},
      "Each micro-batch gets the first rows of z.grad(). Where its own begin has to move on with the loop."},
     {"nothing_sent_back",
      {nothing_sent_back::accumulate},
      "z has its gradient now, and w has none: the second pass, which sends it back through the encoder, is "
      "missing."}});

}  // namespace
