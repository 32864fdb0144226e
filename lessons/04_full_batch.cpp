// Lesson 4: the gradient of a batch is the mean of its rows' gradients.
#include "course/kit/toy.hpp"

LESSON(learning_rate(0.1, 0.01, 1)) {
    const Tensor x = toy::rows(), w = toy::weights();  // six rows of three numbers, and three weights
    const double rate = setting("rate");

    step("Our example is called the toy: it has a batch of six rows of three numbers, and three weights.");
    show("x", x, "w", w, "w.grad", gradient(w));
    note("A gradient that is not computed yet is printed as -. The sign - does not mean 0.");

    step("The forward pass multiplies each row by w. The loss is the mean of the six products.");
    code(2);
    const Tensor y = matmul(x, w);
    const Tensor loss = mean(y);
    show("y", y, "loss", loss);
    note("Training makes a loss smaller. This loss does not measure an error, but it is easy to compute.");
    check_close("the loss is -3.97205 / 6", loss, -3.97205 / 6, roundings(12) * 2);  // numbers below 2

    ask("the-gradient");
    code(1);
    loss.backward();
    const Array<real> full = w.grad().clone();
    show("w.grad", full);
    check_close("w.grad is the mean of the rows", full, toy::mean_of_rows, toy::bound(9));  // 9 roundings

    ask("row-0");
    note("Take v, a copy of w: backward() adds a sixth of each row's gradient to v.grad, row by row.");
    const Tensor v = toy::weights();
    auto rows = table({"row", "adds", "v.grad afterwards"});
    for (int i = 0; i < 6; ++i) {
        const Tensor row = slice(x, 0, i, i + 1);
        const auto part = grad(matmul(row, v) / 6, {v}).front();  // does not add to v.grad
        (matmul(row, v) / 6).backward();
        rows.row(i, part, v.grad());
    }
    check_equal("the sum of six rows = the batch, bit for bit", v.grad(), full);
    graph("full-batch", "Six rows and one w: each row counts a sixth", toy::shares({}, full));

    const Tensor g = full;
    const double first = w.value().to_vector()[0], slope = full.to_vector()[0], squares = sum(g * g).item();
    ask("one-step", "rate", rate, "g", full, "new", first - rate * slope, "uphill", first + rate * slope);
    code(1);
    sgd_step({w}, rate);
    const Tensor after = mean(matmul(x, w));
    const double fell = double(loss.item()) - double(after.item());
    show("w", w, "loss before", loss, "loss after", after, "the loss fell by", fell);
    show("rate times |w.grad|^2", rate * squares);
    note("|w.grad|^2 is the sum of the squares of the three components.");
    // A step rounds each weight twice. The loss after it has 14 roundings, and magnitudes below 4.
    check_close("the loss fell by rate times |w.grad|^2", fell, rate * squares, roundings(30) * 4);

    ask("twenty-steps", "fell", short_number(rate * squares));
    auto steps = table({"steps", "loss", "fell by, in all", "w.grad in the last step"});
    double last = after.item();
    for (int k = 2; k <= 20; ++k) {
        w.zero_grad();
        mean(matmul(x, w)).backward();
        sgd_step({w}, rate);
        last = mean(matmul(x, w)).item();
        if (k == 2 || k % 10 == 0) steps.row(k, last, loss.item() - last, w.grad());
    }
    check_equal("the gradient is still the same", w.grad(), full);
    // w moves by less than 20 rates in all, so the magnitudes of the last loss are below 4 + 20 rates.
    check_close("the loss fell 20 times as far", loss.item() - last, 20 * rate * squares,
                roundings(80) * (4 + 20 * rate));
}
