// Lesson 17: Adam's step does not depend on the size of the gradient, so Adam hides a forgotten division.
#include "course/kit/window_gradient.hpp"

LESSON(equal_micro_batches({3, 6})) {
    const Tensor x = toy::rows(), start = toy::weights();
    const int n = setting("micro"), each = 6 / n;  // micro-batches, and rows in each of them

    step("We update w with {} micro-batches. For a copy of w, we forget to divide losses by {}.", n, n);
    const auto accumulate = [&](const Tensor& w, int divisor) {
        for (const Tensor& micro : split(x, each)) (mean(matmul(micro, w)) / divisor).backward();
    };
    const Tensor divided = toy::weights(), forgotten = toy::weights();
    Sgd sgd({divided, forgotten}, {.learning_rate = 0.2});
    code(3);
    accumulate(divided, n);
    accumulate(forgotten, 1);
    sgd.step();
    auto by_sgd = table({"SGD, rate 0.2", "w.grad", "w moved by"});
    by_sgd.row("divided", divided.grad(), divided - start);
    by_sgd.row("not divided", forgotten.grad(), forgotten - start);
    check_close("SGD moves N times as far", forgotten - start, scaled(toy::mean_of_rows, -0.2 * n), 1e-6);

    step("Adam keeps two averages for each weight: m of its gradients g, and v of their squares.");
    note("An update subtracts the rate times m / sqrt(v). Adam corrects m and v because both begin at 0.");
    const Tensor one = zeros({1});
    Adam adam({one}, {.learning_rate = 0.1});
    auto example = table({"update", "g", "average m", "average v", "m / sqrt(v)", "the weight"});
    double m = 0, v = 0, t = 0, expected = 0;
    code(3);
    for (const double g : {0.5, 0.5, -1.0}) {
        m = 0.9 * m + 0.1 * g, v = 0.999 * v + 0.001 * g * g, t += 1;
        const double mean_g = m / (1 - std::pow(0.9, t)), mean_square = v / (1 - std::pow(0.999, t));
        expected -= 0.1 * mean_g / std::sqrt(mean_square);
        (one * g).backward();
        adam.step(), adam.zero_grad();
        example.row(int(t), g, mean_g, mean_square, mean_g / std::sqrt(mean_square), one);
    }
    check_close("Adam has moved the weight by these steps", one, std::vector{expected}, 1e-6);

    ask("under-adam", "n", n, "squared", n * n);
    const Tensor by_mean = toy::weights(), by_sum = toy::weights();
    accumulate(by_mean, n), accumulate(by_sum, 1);
    Adam({by_mean, by_sum}, {.learning_rate = 0.1}).step();
    auto by_adam = table({"Adam, rate 0.1", "w.grad", "w moved by"});
    by_adam.row("divided", by_mean.grad(), by_mean - start);
    by_adam.row("not divided", by_sum.grad(), by_sum - start);
    check_close("both steps are equal, up to rounding", by_sum - start, by_mean - start, 1e-6);
    note("If you forget to divide, m / sqrt(v) is {} g / sqrt({} g g), which is g / sqrt(g g).", n, n * n);

    step("Adam adds a small number, eps = 1e-8, to sqrt(v), so that it never divides by 0.");
    note("The first step is then the rate times |g| / (|g| + eps).");
    const auto first_step = [](double g) {  // in units of the learning rate
        const Tensor w = zeros({1});
        (w * g).backward();
        Adam({w}, {.learning_rate = 1, .eps = 1e-8}).step();
        return -double(w.item());
    };
    show("step / rate for g = 1e-8", first_step(1e-8));

    ask("near-eps");
    auto small = table({"g", "step / rate", "step / rate for 4 g"});
    for (const double g : {1.0, 1e-4, 1e-6, 1e-8, 1e-9})
        small.row(short_text(g), first_step(g), first_step(4 * g));
    // One step of Adam rounds fewer than 20 times.
    check_close("at eps, the factor counts", {first_step(1e-8), first_step(4e-8)}, {0.5, 0.8}, roundings(20));

    ask("where-it-shows", "n", n);
    note("Adam's decay adds 0.5 w to w.grad, which is -0.3, or {} if you forget to divide.", -0.3 * n);
    auto seen = table({"", "norm of w.grad", "a weight of 1 after one step"});
    for (const int divisor : {n, 1}) {
        const Tensor w = toy::weights(), weight = parameter(Array<real>({1}, {1}, options().device));
        Adam decaying({weight}, {.learning_rate = 0.1, .weight_decay = 0.5});
        accumulate(w, divisor);
        for (int k = 0; k < n; ++k) (weight * (-0.3) / divisor).backward();
        decaying.step();
        seen.row(divisor == n ? "divided" : "not divided", clip_grad_norm<real>({w}, 1e9), weight);
    }
    check_close("0.9 and 1.1", seen.column("a weight of 1 after one step"), {0.9, 1.1}, 1e-6);

    step("Now SGD and Adam train w, with the mean or the sum of the losses. The solution is (1, 1, 1).");
    const auto loss_of = [](const Tensor& rows, const Tensor& w) {
        return mse(matmul(rows, w), matmul(rows, toy::ones())).mean();
    };
    const auto train = [&](Optimizer<real>&& optimizer, double divisor) {
        const Tensor w = optimizer.parameters().front();
        std::vector<double> losses{loss_of(x, w).item()};
        for (int update = 0; update < 30; ++update) {
            for (const Tensor& micro : split(x, each)) (loss_of(micro, w) / divisor).backward();
            optimizer.step(), optimizer.zero_grad();
            losses.push_back(loss_of(x, w).item());
        }
        return losses;
    };
    const auto sgd_mean = train(Sgd<real>({toy::weights()}, {.learning_rate = 0.3}), n);
    const auto sgd_sum = train(Sgd<real>({toy::weights()}, {.learning_rate = 0.3}), 1);
    const auto adam_mean = train(Adam<real>({toy::weights()}, {.learning_rate = 0.1}), n);
    const auto adam_sum = train(Adam<real>({toy::weights()}, {.learning_rate = 0.1}), 1);
    const std::string mean_of_n = say("mean of {}", n), sum_of_n = say("sum of {}", n);
    auto trained = table({"loss after 30 updates", mean_of_n, sum_of_n});
    trained.row("SGD, rate 0.3", sgd_mean.back(), sgd_sum.back());
    trained.row("Adam, rate 0.1", adam_mean.back(), adam_sum.back());
    // This loss is quadratic. SGD converges if its rate is below 2 / (largest curvature) = 0.72.
    check("SGD ends near 0 if we divide", sgd_mean.back() < 1e-5);
    check("SGD explodes if we do not divide", sgd_sum.back() > 1e10);
    check_close("Adam: both losses agree", adam_sum, adam_mean, 1e-4);
    const Plane losses = curves("updates", "loss, by powers of ten",
                                {{"SGD, " + mean_of_n, sgd_mean},
                                 {"SGD, " + sum_of_n, sgd_sum},
                                 {"Adam, " + mean_of_n, adam_mean},
                                 {"Adam, " + sum_of_n, adam_sum}},
                                Plane::Scale::logarithmic);
    graph("losses", "The loss over 30 updates: SGD explodes, Adam hides the mistake", losses);
}
