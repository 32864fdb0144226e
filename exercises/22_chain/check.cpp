// The answer and the check of exercise chain.
#include "given.hpp"

#include <fmt/format.h>

#include "check.hpp"

namespace {

namespace right {
std::size_t first_layer(const DeepChain& chain, std::size_t segment) {
    return segment * chain.w.size() / chain.segments;
}

float forward(DeepChain& chain, const Array<float>& x, const Array<float>& target) {
    const NoGrad off;
    chain.inputs.clear();
    Tensor h = constant(x);
    for (std::size_t s = 0; s < chain.segments; ++s) {
        chain.inputs.push_back(h.value());
        h = layers(h, chain.w, first_layer(chain, s), first_layer(chain, s + 1));
    }
    return loss_of(h, target).item();
}

void backward(DeepChain& chain, const Array<float>& target) {
    Array<float> gradient;
    for (std::size_t s = chain.segments; s-- > 0;) {
        const Tensor input = parameter(chain.inputs[s]);
        const Tensor h = layers(input, chain.w, first_layer(chain, s), first_layer(chain, s + 1));
        if (s + 1 == chain.segments) {
            loss_of(h, target).backward();
        } else {
            sum(h * constant(gradient)).backward();
        }
        gradient = input.grad();
    }
}
}  // namespace right

#include "22_chain.mistakes.hpp"

constexpr int rows = 64, width = 8;
constexpr double bytes_of_an_array = rows * width * sizeof(float);

Array<float> random_array(exercise::AnswerTest& look, int height) {
    std::vector<float> values;
    for (const double v : look.uniforms(static_cast<std::size_t>(height * width)))
        values.push_back(static_cast<float>(v));
    return Array<float>({height, width}, values);
}

// Weights near the identity, because a deep chain of other weights forgets its input.
std::vector<Tensor> some_weights(exercise::AnswerTest& look, std::size_t count) {
    std::vector<Tensor> weights;
    for (std::size_t layer = 0; layer < count; ++layer) {
        std::vector<float> values;
        for (int i = 0; i < width * width; ++i)
            values.push_back(static_cast<float>((i % (width + 1) == 0 ? 1.1 : 0) + look.uniform(-0.1, 0.1)));
        weights.push_back(parameter(Array<float>({width, width}, values)));
    }
    return weights;
}

std::vector<Tensor> copies(const std::vector<Tensor>& weights) {
    std::vector<Tensor> result;
    for (const Tensor& w : weights)
        result.push_back(parameter(Array<float>(w.shape(), w.value().to_vector())));
    return result;
}

float plain_pass(const std::vector<Tensor>& w, const Array<float>& x, const Array<float>& target) {
    const Tensor loss = loss_of(layers(constant(x), w, 0, w.size()), target);
    loss.backward();
    return loss.item();
}

// Returns the most arrays of (rows, width) that `pass` has at the same time. The gradients of the weights, which
// are allocated before, do not count.
double arrays_kept(const std::function<void()>& pass) {
    const auto before = memory::in_use();
    memory::reset_peak();
    pass();
    return std::round(static_cast<double>(memory::peak() - before) / bytes_of_an_array);
}

void clear_gradients(const std::vector<Tensor>& weights) {
    for (const Tensor& w : weights) w.zero_grad();
}

struct Pass {
    double arrays = 0, plain_arrays = 0;
    float loss = 0;
};

// Compares one forward and backward with the plain chain. Returns nothing if the answer is wrong.
bool same_pass(exercise::AnswerTest& look, const Functions& yours, DeepChain& chain,
               const std::vector<Tensor>& plain_w, const Array<float>& x, const Array<float>& target,
               Pass& pass) {
    clear_gradients(chain.w);
    clear_gradients(plain_w);
    float plain_loss = 0;
    if (!look.runs([&] {
            pass.arrays = arrays_kept([&] {
                pass.loss = yours.forward(chain, x, target);
                yours.backward(chain, target);
            });
        }))
        return false;
    pass.plain_arrays = arrays_kept([&] { plain_loss = plain_pass(plain_w, x, target); });
    if (!look.equal("loss", pass.loss, plain_loss)) return false;
    for (std::size_t i = 0; i < plain_w.size(); ++i) {
        const std::string name = fmt::format("gradient of w[{}]", i);
        if (!look.equal(name, exercise::gradient_of(chain.w[i]), exercise::gradient_of(plain_w[i])) ||
            !look.same_bits(
                name, chain.w[i].grad().to_vector(), plain_w[i].grad().to_vector(),
                "The gradient is right except for rounding. For each segment except the last, call "
                "backward() on sum(h * constant(g)), where h is the segment's result and g is the "
                "gradient of h."))
            return false;
    }
    return true;
}

// The kept inputs, the results of the longest segment, and a few arrays for the pass itself.
double budget(const DeepChain& chain) {
    const std::size_t n = chain.w.size(), k = chain.segments;
    return static_cast<double>(k + (n + k - 1) / k + 6);
}

void examine_training(exercise::AnswerTest& look, const Functions& yours) {
    constexpr int updates = 100;
    constexpr double rate = 1;
    exercise::AnswerTest fixed(1);  // the same training for every seed
    DeepChain chain{some_weights(fixed, 32), 6, {}};
    const auto plain_w = copies(chain.w);
    const auto x = random_array(fixed, rows);
    std::vector<float> sorted = x.to_vector();
    for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] *= 0.3f;
    const Array<float> target({rows, width}, sorted);
    look.with(fmt::format("a training of {} updates, with {} layers in {} segments", updates, chain.w.size(),
                          chain.segments));
    plain_pass(chain.w, x, target);  // allocates the gradients
    plain_pass(plain_w, x, target);
    Pass pass, most;
    float first_loss = 0;
    for (int i = 0; i < updates; ++i) {
        if (!same_pass(look, yours, chain, plain_w, x, target, pass)) return;
        if (i == 0) first_loss = pass.loss;
        most.arrays = std::max(most.arrays, pass.arrays);
        most.plain_arrays = std::max(most.plain_arrays, pass.plain_arrays);
        sgd_step(chain.w, rate);
        sgd_step(plain_w, rate);
    }
    if (!look.at_most(fmt::format("arrays at the same time (the plain chain has {:.0f})", most.plain_arrays),
                      most.arrays, budget(chain)))
        return;
    look.trained(fmt::format(
        "Your chain has trained {} layers in {} segments with at most {:.0f} arrays at the same time instead "
        "of {:.0f}: "
        "the loss fell from {:.3f} to {:.3f} in {} updates, and each gradient had the same bits as in "
        "the plain chain.",
        chain.w.size(), chain.segments, most.arrays, most.plain_arrays, first_loss, pass.loss, updates));
}

void examine(exercise::AnswerTest& look, const Functions& yours) {
    struct Case {
        std::size_t layers, segments;
    };
    for (const auto& [n, k] : {Case{6, 2}, {7, 3}, {5, 1}, {4, 4}, {40, 6}}) {
        look.with(fmt::format("{} layers, {} segment{}", n, k, k == 1 ? "" : "s"));
        DeepChain chain{some_weights(look, n), k, {}};
        const auto plain_w = copies(chain.w);
        const auto x = random_array(look, rows), target = random_array(look, rows);
        plain_pass(chain.w, x, target);  // allocates the gradients
        plain_pass(plain_w, x, target);
        Pass pass;
        if (!same_pass(look, yours, chain, plain_w, x, target, pass)) continue;
        look.at_most(fmt::format("arrays at the same time (the plain chain has {:.0f})", pass.plain_arrays),
                     pass.arrays, budget(chain));
    }
    if (look.complaints().empty()) examine_training(look, yours);  // a wrong gradient does not train
}

const exercise::Add add_to_the_course(
    {.title = "a chain with checkpoints, which trains within a budget",
     .minutes = 25,
     .lesson = "checkpointing",
     .hints =
         {"Which arrays does backward() need before it can recompute a segment?",
          "Before each segment, forward() keeps the segment's input h.value(), and then runs the segment "
          "with layers(). backward() goes through the segments from the last to the first, and passes one "
          "gradient from each segment to the segment before it.",
          "In backward(), begin with the last segment of the chain. Make a parameter `input` from the kept "
          "array of a segment, and run the layers of the segment from `input` to the result h. For the last "
          "segment, call backward() on the loss, otherwise on the sum of h times the gradient of the next "
          "segment's input. Then input.grad() is the gradient for the segment before."},
     .why = "You have written checkpointing. The price is one more forward pass. With n layers in k "
            "segments, the memory falls from n arrays to about k + n / k. tally's checkpoint() does the same "
            "for any function."},
    examine, answers);

}  // namespace
