// Lesson 18: AdamA adds up the squares of gradients, where Adam squares their sum, and needs no gradient.
#include "adam_a.hpp"

#include "course/kit/window_gradient.hpp"

// Returns v without its factor 0.001: after the first update, the sum of squares that v contains.
static double squares_in_v(const Optimizer<real>& optimizer) {
    TrainingState state;
    optimizer.save(state, "optimizer");
    return double(state.get<Array<real>>("optimizer/v/0").to_vector()[0]) / (1 - 0.999);
}

// The square root of each number is a whole number.
LESSON(one_of("micro", "micro-batches with the same gradient", 4, {4, 9, 16})) {
    const int n = setting("micro");

    step("Adam needs the gradient of the whole batch: w.grad stays in memory until the update.");
    note("AdamA's fold() adds a gradient g to the average m, and g^2 to the average v. Then g can be freed.");
    const Tensor layer = zeros({1000, 250});  // 250000 weights of 4 bytes
    AdamA of_layer({layer}, {.learning_rate = 0.1});
    const auto gradient_bytes = [] {
        return memory::report(options().device).in_use_by[int(MemoryClass::gradient)];
    };
    auto bytes = table({"micro-batch", "bytes of gradients after backward()", "after free_grad()"});
    for (const int micro : {1, 2, 3}) {
        mean(layer * micro).backward();
        const std::size_t after_backward = gradient_bytes();
        of_layer.fold();
        layer.free_grad();
        bytes.row(micro, after_backward, gradient_bytes());
    }
    of_layer.step();
    check_equal("no gradient stays in memory", bytes.column("after free_grad()"), {0, 0, 0});

    step("Two micro-batches have the gradients +1/2 and -1/2. We give them first to Adam, then to AdamA.");
    const Tensor w = zeros({1}), folded = zeros({1});
    Adam adam({w}, {.learning_rate = 0.1});
    AdamA adam_a({folded}, {.learning_rate = 0.1});
    for (const double g : {0.5, -0.5}) (w * g).backward();
    code(3);
    for (const double g : {0.5, -0.5}) {
        (folded * g).backward();
        adam_a.fold();
    }
    adam.step();
    adam_a.step();
    note("Adam adds 0.001 g^2 to v in step(). AdamA adds 0.001 g^2 to v in each fold().");

    ask("squares");
    auto opposite = table({"g = +1/2, -1/2", "v / 0.001", "w"});
    opposite.row("Adam", squares_in_v(adam), w);
    opposite.row("AdamA", squares_in_v(adam_a), folded);
    check_close("v: 0 and 1/2", opposite.column("v / 0.001"), {0.0, 0.5}, roundings(8));

    ask("when-they-agree", "n", n, "root", std::lround(std::sqrt(n)));
    const Tensor v = zeros({1}), folded_v = zeros({1});
    Adam on_the_sum({v}, {.learning_rate = 0.1});
    AdamA on_each({folded_v}, {.learning_rate = 0.1});
    for (int micro = 0; micro < n; ++micro) {
        (v / n).backward();
        (folded_v / n).backward();
        on_each.fold();
    }
    on_the_sum.step();
    on_each.step();
    auto agreeing = table({say("g = 1/{}, {} times", n, n), "v / 0.001", "step / rate"});
    agreeing.row("Adam", squares_in_v(on_the_sum), -double(v.item()) / 0.1);
    agreeing.row("AdamA", squares_in_v(on_each), -double(folded_v.item()) / 0.1);  // 20 roundings each
    check_close("v: 1 and 1/N", agreeing.column("v / 0.001"), {1.0, 1.0 / n}, roundings(4 * n));
    check_close("1 and sqrt(N)", agreeing.column("step / rate"), {1.0, std::sqrt(n)}, n * roundings(20));
    note("AdamA is a different optimizer than Adam, so AdamA needs another learning rate.");

    ask("one-micro-batch");
    const Tensor x = toy::rows(), by_adam_w = toy::weights(), by_adam_a = toy::weights();
    AdamW adam_w({by_adam_w}, {.learning_rate = 0.1, .weight_decay = 0.5});
    AdamA one_fold({by_adam_a}, {.learning_rate = 0.1, .weight_decay = 0.5});
    for (int update = 0; update < 10; ++update) {
        mse(matmul(x, by_adam_w), matmul(x, toy::ones())).mean().backward();
        mse(matmul(x, by_adam_a), matmul(x, toy::ones())).mean().backward();
        one_fold.fold();
        one_fold.step();
        adam_w.step();
        adam_w.zero_grad();
    }
    show("AdamW, 10 updates", by_adam_w, "AdamA, 10 updates", by_adam_a);
    check_equal("the same bits", by_adam_a, by_adam_w);

    ask("when-to-divide");
    (folded * 8).backward();
    adam_a.fold();
    show("w.grad after fold()", gradient(folded));
}
