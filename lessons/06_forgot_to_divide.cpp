// Lesson 6: without a division, the sum of N micro-batch gradients is N times too large.
#include "course/kit/toy.hpp"

LESSON(equal_micro_batches({3, 6})) {  // with 2, the training without a division happens to converge
    const Tensor x = toy::rows(), w = toy::weights();  // six rows of three numbers, and three weights
    const int n = setting("micro"), each = 6 / n;      // micro-batches, and rows in each of them

    step("First we compute one loss of all six rows. Its gradient is the gradient that we want.");
    code(2);
    const Tensor loss = mean(matmul(x, w));
    loss.backward();
    const Array<real> full = w.grad().clone();  // an Array has numbers, but no gradient; real is float
    show("loss", loss, "w.grad", full);

    step("Suppose that six rows do not fit into memory. Micro-batches: {}, rows in each: {}.", n, each);
    note("A micro-batch is a part of the batch. We do not clear w.grad between two micro-batches.");
    w.zero_grad();
    std::vector<double> losses;
    auto after = table({"rows", "loss", "this micro-batch", "w.grad afterwards"});
    code(3);
    for (const auto& [micro, rows] : toy::micro_batches(x, each)) {
        const Tensor part = mean(matmul(micro, w));
        part.backward();
        const auto alone = grad(mean(matmul(micro, w)), {w}).front();  // does not add to w.grad
        after.row(rows, part, alone, w.grad());  // rows is a text, "0-1" for the first two
        losses.push_back(part.item());
    }
    const Array<real> sum = w.grad().clone();
    graph("forgot-to-divide", "How much one row counts in the full batch and in a micro-batch",
          toy::shares(each, full, sum));  // draws the weights of the rows, and both gradients

    ask("how-many-times", "n", n, "each", each, "sum", sum);  // the question contains {n}, {each} and {sum}
    show("full batch", full, "sum of the micro-batches", sum, "sum / full batch", ratios(sum, full));
    // A sum of N gradients rounds at most 15 times, and a step by this sum fewer than 64 times.
    const auto bound = [&](int times) { return scaled(toy::bound(times), n); };
    check_close("N times the full batch", sum, scaled(toy::mean_of_rows, n), bound(15));

    ask("does-the-loss-show-it", "n", n, "each", each);
    show("mean of the micro-losses", mean_of(losses), "loss of the full batch", loss);
    // Both add the same six products x w, whose magnitudes have a mean below 2, and round at most 12 times.
    check_close("the two losses are equal", mean_of(losses), loss, roundings(12) * 2);

    ask("the-step", "n", n);
    note("One copy of w makes a step with the full batch's gradient, a second copy with the sum.");
    const Tensor by_mean = toy::weights(), by_sum = toy::weights();
    mean(matmul(x, by_mean)).backward();
    for (const Tensor& micro : split(x, each)) mean(matmul(micro, by_sum)).backward();
    code(1);
    sgd_step({by_mean, by_sum}, 0.1);  // learning rate 0.1
    auto moves = table({"", "w", "moved by"});
    moves.row("before", w, "");
    moves.row("full batch", by_mean, by_mean - w);
    moves.row("sum", by_sum, by_sum - w);
    check_close("the sum moves w N times as far", by_sum - w, scaled(toy::mean_of_rows, -0.1 * n), bound(64));

    step("Now we take a loss with a minimum: the mean squared error, which is 0 at w = (1, 1, 1).");
    note("SGD trains twice at rate 0.3. Only one training divides losses by N, the number of micro-batches.");
    const Tensor target = matmul(x, toy::ones());
    const auto train = [&](double divisor) {
        const Tensor v = toy::weights();
        std::vector<double> errors{mse(matmul(x, v), target).mean().item()};  // mse() has a sum and a count
        for (int update = 0; update < 20; ++update) {
            v.zero_grad();
            for (int k = 0; k < n; ++k) {
                const Tensor micro = slice(x, 0, k * each, (k + 1) * each);
                (mse(matmul(micro, v), matmul(micro, toy::ones())).mean() / divisor).backward();
            }
            sgd_step({v}, 0.3);
            errors.push_back(mse(matmul(x, v), target).mean().item());
        }
        return errors;
    };
    const std::vector<double> divided = train(n), forgotten = train(1);
    show("error before both trainings", divided.front(), "divided by N, after 20 updates", divided.back());

    ask("twenty-updates", "start", short_number(divided.front()), "divided", short_number(divided.back()));
    show("not divided, after 20 updates", forgotten.back());
    graph("errors", "The error after each update",
          curves("updates", "error", {{"divided by N", divided}, {"not divided", forgotten}},
                 Plane::Scale::logarithmic));
    check("the divided training ends below 0.001", divided.back() < 0.001);  // it began at 2.5
    check("the undivided training gets worse", forgotten.back() > forgotten.front());
    note("The wrong gradient acts like a learning rate {} times as large.", n);
}
