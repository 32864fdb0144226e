// Lesson 19: batch norm takes its statistics from the micro-batch, so accumulation computes another gradient.
#include "course/kit/window_gradient.hpp"

static Tensor column(const std::vector<real>& numbers) {
    return Array<real>({std::int64_t(numbers.size()), 1}, numbers, options().device);
}

static Tensor weight(real value) { return parameter(Array<real>({1}, {value}, options().device)); }

LESSON(whole_number("micro", "micro-batches of two", 2, 2, 4)) {
    const int n = setting("micro"), items = 2 * n;
    const Tensor x = slice(column({0, 2, 4, 6, 8, 10, 12, 14}), 0, 0, items);
    const Tensor t = slice(column({1, -2, 0.5, 3, 2, -1, -0.5, 1.5}), 0, 0, items);
    const Tensor gain = weight(1), bias = weight(0);

    step("Batch norm subtracts the mean of the batch and divides by its standard deviation.");
    note("Multiplying by a trained gain then gives y. The loss is the mean of t * y, for given numbers t.");
    code(2);
    const auto normed = batch_norm(x, gain, bias, 0.0);
    mean(t * normed.y).backward();
    const double full = gain.grad().item();
    show("x", values(x), "t", values(t), "y, x normalised", values(normed.y), "gain.grad", full);

    step("Now split the items into micro-batches of two. Each micro-batch has its own mean and deviation.");
    gain.zero_grad();
    const auto x_micro = split(x, 2), t_micro = split(t, 2);
    std::vector<RunningStatistics<real>::Batch> own;
    auto parts = table({"x", "t", "mean", "variance", "x normalised"});
    code(3);
    for (int k = 0; k < n; ++k) {
        const auto part = batch_norm(x_micro[k], gain, bias, 0.0);
        (mean(t_micro[k] * part.y) / n).backward();
        own.push_back(part.statistics);
        parts.row(values(x_micro[k]), values(t_micro[k]), own[k].mean.item(), own[k].variance.item(),
                  values(part.y));
    }
    const double micro = gain.grad().item();

    ask("gradient-of-the-gain", "n", n, "full", full, "micro", micro, "sum", n * micro);
    show("gain.grad of the micro-batches", micro);
    check("even the sign of the gradient is wrong", full > 0.1 && micro < -0.1);

    const double variance = normed.statistics.variance.item();
    ask("pooled-variance", "n", n, "variance", variance, "between", variance - 1);
    RunningStatistics<real>::Batch pooled;  // its variance is below 30, and rounds at most 12 times
    code(1);
    for (const auto& part : own) pooled = pooled.pooled_with(part);
    show("mean of all items", pooled.mean.item(), "variance of all items", pooled.variance.item());
    check_close("as in the full batch", pooled.variance, normed.statistics.variance, 30 * roundings(12));

    step("To repair the gradient, normalise each micro-batch with the mean and variance of all items.");
    RunningStatistics<real> fixed(1, options().device);
    fixed.mean = pooled.mean, fixed.variance = pooled.variance;
    gain.zero_grad();
    code(3);
    for (int k = 0; k < n; ++k) {
        const Tensor y = batch_norm(x_micro[k], gain, bias, fixed, 0.0);
        (mean(t_micro[k] * y) / n).backward();
    }
    auto repaired = table({"", "full batch", "micro-batches", "repaired"});
    repaired.row("gain.grad", full, micro, gain.grad().item());
    check_close("repaired = full batch", gain.grad().item(), real(full), 3 * roundings(16));  // terms below 3

    ask("before-the-layer");
    const Tensor s = weight(1);
    const auto gradient_of_s = [&](const Tensor& y) { return double(grad(mean(t * y), {s}).front().item()); };
    const double repaired_s = gradient_of_s(batch_norm(x * s, gain, bias, fixed, 0.0));
    code(2);
    const Tensor xs = x * s, centred = xs - mean(xs);
    const Tensor y = centred / sqrt(mean(centred * centred));
    const double full_s = gradient_of_s(y);  // the mean and the deviation are in the graph
    show("gradient of s, repaired", repaired_s, "gradient of s, full batch", full_s);
    check("in the full batch, the gradient of s is 0", std::abs(full_s) < 1e-6);
    check("with constants, the gradient of s is not 0", std::abs(repaired_s) > 0.1);

    step("add_with_exact_batch_norm() also adds the gradient through the mean and variance of a batch norm.");
    Linear<real> scale(1, 1, {}, {.bias = false});
    scale.weight = parameter(Array<real>({1, 1}, {1}));  // s = 1
    Sequential<real> model(std::move(scale), BatchNorm<real>(1, 0.0));
    model.to(options().device);
    Sgd<real> sgd(model.parameters(), {.learning_rate = 1});  // subtracts the gradients
    Window<real> window(sgd);
    const auto input = [&](const Items& part) { return constant(rows(x.value(), part)); };
    const auto loss = [&](const Tensor& output, const Items& part) {
        return Loss(output * constant(rows(t.value(), part)));
    };
    code(2);
    add_with_exact_batch_norm<real>(window, model, split(Items::in_order(items), 2), input, loss);
    window.finish();
    const std::vector exact{1 - model.parameters()[0].item(), 1 - model.parameters()[1].item()};
    show("gradients of s and of the gain", exact);
    check_close("both are the full batch's", exact, {0.0, full}, 3 * roundings(32));  // 32 roundings below 3

    RunningStatistics<real> in_each(1, options().device), once(1, options().device);
    for (const auto& part : own) in_each.commit(part, 0.1);
    once.commit(pooled, 0.1);
    ask("running-mean", "n", n, "in_each", in_each.mean.item(), "once", once.mean.item());
    show("updated in each forward pass", in_each.mean.item(), "updated once, as in tally", once.mean.item());
}
