// Lesson 15: clipping, a penalty and weight decay belong to the update, so each of them happens once.
#include "course/kit/window_gradient.hpp"

enum When { each_time, at_the_end };  // clip w.grad after each backward(), or only after the last one
// Adds up the gradients of the micro-losses, each divided by `divisor`, and shortens w.grad to `limit`.
static Array<real> clip(const std::vector<Tensor>& all, double limit, std::size_t divisor, When when) {
    const Tensor w = zeros({all[0].shape()[1]});  // a parameter with a number for each column
    for (const Tensor& micro : all) {
        (mean(matmul(micro, w)) / divisor).backward();
        if (when == each_time || &micro == &all.back()) clip_grad_norm<real>({w}, limit);  // the last one
    }
    return w.grad().clone();
}

static Array<real> mean_of_clipped(const std::vector<Tensor>& all, double limit) {  // clips each alone
    Array<real> total = Array<real>::zeros({all[0].shape()[1]}, options().device);  // of the flag --device
    for (auto& micro : all) add_scaled(total, 1.0 / double(all.size()), clip({micro}, limit, 1, each_time));
    return total;
}

LESSON(equal_micro_batches({2, 3})) {
    const int n = setting("micro"), each = 6 / n;  // for the penalty and the decay, not for the clipping
    const Tensor x = toy::rows(), diagonal = Array<real>({2, 2}, {2, 0, 0, 2}, options().device);
    const std::vector<Tensor> two = split(diagonal, 1), three = split(x, 2);  // [2 0], [0 2]; the toy's

    ask("clip-once");
    const Tensor once = zeros({2}), early = zeros({2}), running = zeros({3});  // clipped once or each time
    code(2);
    for (auto& micro : two) (mean(matmul(micro, once)) / 2).backward();
    clip_grad_norm<real>({once}, 1);
    show("clipped once", once.grad(), "the full batch, clipped", clip({diagonal}, 1, 1, at_the_end));
    check_equal("both gradients are equal", once.grad(), clip({diagonal}, 1, 1, at_the_end));  // limit 1

    step("Some programs clip after each backward(), as Keras 3 did until July 2024 (keras issue 19990).");
    code(3);
    for (auto& micro : two) {
        mean(matmul(micro, early)).backward();  // nothing divided
        clip_grad_norm<real>({early}, 1);
    }
    auto ways = table({"limit 1", "gradient"});
    ways.row("once, after dividing and adding", once.grad());
    ways.row("w.grad after each backward()", early.grad());
    ways.row("each gradient alone, then the mean", mean_of_clipped(two, 1));
    // clip_grad_norm() multiplies by limit / (length + 1e-6), as in PyTorch.
    check_close("[1 0] + [0 2], clipped to 1", early.grad(), {std::sqrt(0.2), std::sqrt(0.8)}, 2e-6);
    note("Clipping is not additive: clip(a + b) is not clip(a) + clip(b).");

    ask("early-clip");
    std::vector<double> lengths;  // clip_grad_norm() returns the length before clipping
    code(3);
    for (auto& micro : three) {
        (mean(matmul(micro, running)) / 3).backward();
        lengths.push_back(clip_grad_norm<real>({running}, 0.5));
    }
    const Array<real> at_end = clip(three, 0.5, 3, at_the_end);
    auto of_toy = table({"limit 0.5", "gradient"});
    of_toy.row("once", at_end);
    of_toy.row("w.grad after each backward()", running.grad());
    of_toy.row("each gradient alone, then the mean", mean_of_clipped(three, 0.5));
    show("length before each clipping", lengths);
    check_close("both agree here", running.grad(), at_end, 4 * roundings(16));  // 16 each, below 2

    step("Only the last micro-batch made w.grad longer than the limit 0.5. We now clip to the length 0.15.");
    const Array<real> right = clip(three, 0.15, 3, at_the_end), wrong_way = clip(three, 0.15, 3, each_time);
    auto luck = table({"", "nothing divided", "each loss divided"});
    luck.row("[2 0] [0 2] at 1", early.grad(), clip(two, 1, 2, each_time));
    luck.row("toy at 0.5", clip(three, 0.5, 1, each_time), running.grad());
    luck.row("toy at 0.15", clip(three, 0.15, 1, each_time), wrong_way);
    show("right at 0.15", right);  // a limit below the first length, 0.1875
    check("at 0.15, early clipping moves a component by over 0.005", furthest(right, wrong_way) > 0.005);

    step("Now we add a penalty 0.1 |w|^2 / 2 to the loss. Micro-batches: {}, rows in each: {}.", n, each);
    const auto penalty = [](const Tensor& w) { return sum(w * w) * 0.05; };
    const Tensor w = toy::weights(), u = toy::weights(), v = toy::weights();
    code(1);
    for (auto& m : split(x, each)) (mean(matmul(m, w)) + penalty(w)).backward();

    ask("penalty", "n", n);
    const auto in_sums = window_gradient(u, [&](Window<real>& window) {  // a Loss contains the penalty once
        for (auto& micro : split(x, each)) window.add(Loss(matmul(micro, u) + penalty(u) / each));
    });
    const auto in_update = window_gradient(v, [&](Window<real>& window) {
        code(2);
        for (auto& micro : split(x, each)) window.add(Loss(matmul(micro, v)));
        window.add_regularizer(penalty(v));
    });
    // One penalty adds 0.1 w to the gradient. The first weight is 0.5, so its component grows by 0.05.
    const double first = values(w.grad())[0], mean_of_first = toy::mean_of_rows[0];
    auto counts = table({"the penalty is added", "and counts"});
    counts.row("to each micro-loss", (first - n * mean_of_first) / 0.05);
    counts.row("to each micro-loss, divided by N", (first / n - mean_of_first) / 0.05);
    counts.row("to each sum of a window", (in_sums[0] - mean_of_first) / 0.05);  // N penalties, divided by 6
    counts.row("window.add_regularizer(penalty)", (in_update[0] - mean_of_first) / 0.05);
    check_close("N, 1, N / 6, 1", counts.column("and counts"), {1.0 * n, 1.0, n / 6.0, 1.0},
                roundings(384) * n);  // 24 roundings of numbers up to 0.8 n, divided by 0.05

    ask("decay", "n", n, "kept", std::pow(0.95, n), "linear", 1 - 0.05 * n);  // 0.05: 0.1 times 0.5
    const Tensor a = parameter(Array<real>({1}, {1}, options().device)), b = parameter(a.value().clone());
    Sgd<real> each_micro_batch({a}, {.learning_rate = 0.1, .weight_decay = 0.5});
    Sgd<real> each_update({b}, {.learning_rate = 0.1, .weight_decay = 0.5});
    code(3);
    for (int micro = 0; micro < n; ++micro) {
        (a * 0.0).backward();  // so only the decay moves a
        each_micro_batch.step();
    }
    for (int micro = 0; micro < n; ++micro) (b * 0.0).backward();
    each_update.step();
    auto decay = table({"step()", "w, from 1", "formula"});
    decay.row("once per update", b.item(), 0.95);
    decay.row("after each micro-batch", a.item(), std::pow(0.95, n));  // a step rounds at most 4 times
    check_close("0.95 and 0.95^N", decay.column("w, from 1"), decay.column("formula"), roundings(4 * n));
}
