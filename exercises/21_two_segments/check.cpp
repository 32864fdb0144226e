// The answer and the check of exercise two-segments.
#include "given.hpp"

#include "check.hpp"

namespace {

namespace right {
void backward_in_two(const Tensor& x, const std::vector<Tensor>& w) {
    const std::size_t half = w.size() / 2;
    Tensor middle;
    {
        const NoGrad off;
        middle = parameter(layers(x, w, 0, half).value());
    }
    mean(layers(middle, w, half, w.size())).backward();
    sum(layers(x, w, 0, half) * constant(middle.grad())).backward();
}
}  // namespace right

#include "21_two_segments.mistakes.hpp"

std::vector<Tensor> some_weights(exercise::AnswerTest& look, int count, int size) {
    std::vector<Tensor> weights;
    for (int i = 0; i < count; ++i) {
        std::vector<float> values;
        for (const double v : look.uniforms(static_cast<std::size_t>(size * size)))
            values.push_back(static_cast<float>(v));
        weights.push_back(parameter(Array<float>({size, size}, values)));
    }
    return weights;
}

// Returns the peak of memory that backward() adds, without the gradients that stay.
double bytes_beyond(const std::vector<Tensor>& w, const std::function<void()>& backward) {
    for (const Tensor& weight : w) weight.zero_grad();
    const auto before = memory::in_use();
    memory::reset_peak();
    backward();
    return static_cast<double>(memory::peak() - before);
}

void examine(exercise::AnswerTest& look, const Functions& yours) {
    for (const int count : {40, 60, 8, 2}) {
        const int size = 4, rows = count == 2 ? 3 : 128;
        look.with(std::to_string(count) + " layers, " + std::to_string(rows) + " rows of " +
                  std::to_string(size) + " numbers");
        const auto w = some_weights(look, count, size);
        std::vector<float> values;
        for (const double v : look.uniforms(static_cast<std::size_t>(rows * size)))
            values.push_back(static_cast<float>(v));
        const Tensor x = constant(Array<float>({rows, size}, values));
        backward_plainly(x, w);  // allocates all gradients
        const double plain = bytes_beyond(w, [&] { backward_plainly(x, w); });
        std::vector<exercise::Numbers> wanted;
        for (const Tensor& weight : w) wanted.push_back(exercise::gradient_of(weight));
        double bytes = 0;
        if (!look.runs([&] { bytes = bytes_beyond(w, [&] { yours.backward_in_two(x, w); }); })) continue;
        bool good = true;
        for (std::size_t i = 0; i < w.size() && good; ++i)
            good = look.equal("gradient of w[" + std::to_string(i) + "]", exercise::gradient_of(w[i]),
                              wanted[i], 1e-4);
        if (!good) continue;  // Memory would hide which mistake made the gradients wrong.
        // With few layers, an answer's other memory is as large as the results of the layers.
        const double target = std::floor(count > 8 ? 0.8 * plain : 4 * plain);
        look.at_most("bytes at the peak (backward_plainly: " + exercise::written({plain}) + ")", bytes,
                     target);
    }
}

const exercise::Add add(
    {.title = "a checkpoint by hand, measured in bytes",
     .minutes = 15,
     .lesson = "checkpointing",
     .hints =
         {"Does the backward pass of the second half read the results of the layers in the first half?",
          "Run the first half of the layers twice. Run it first in a block with NoGrad, to compute only "
          "its last result. Run it again with a graph, after the backward pass of the second half.",
          "Declare Tensor middle before the block with NoGrad, and assign a parameter(...) to middle in this "
          "block. Call backward on the mean of the second half's result. Then recompute the first half, "
          "multiply its result by constant(middle.grad()), and call backward on the sum of the products."},
     .why = "You never kept the results of all layers at the same time. The price is one more forward pass "
            "of the first half. tally's function checkpoint() saves memory in the same way, for any function "
            "and any number of segments."},
    examine, answers);

}  // namespace
