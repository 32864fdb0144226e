// Lesson 5: the gradient of a batch is the mean of the items' gradients.
#include "course/kit/toy.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct FullBatch : Toy {  // six rows x, three weights w
    const double rate = setting("rate");
    const int steps = setting("steps");

    void talk() {
        step("The toy: six items of three numbers, and three weights.");
        show("x", x);
        show("w", w);
        show("w.grad", gradient(w));

        step("Forward: six dot products, a row times w each. The loss is their mean.");
        code(2);
        auto y = matmul(x, w);
        auto loss = mean(y);
        show("y", y);
        show("loss", loss);
        note("A loss is the number that training makes smaller.");
        check_loss(loss);

        predict(
            "Each of the six products counts 1/6 of the loss. w.grad will be",
            {right("the mean of the rows"),
             wrong("the sum of the rows", "Then every product would count 1 in the loss. It counts less."),
             wrong("a sixth of w", "A slope says how the loss moves. w times a row moves by the row."),
             wrong("the loss times w", "How large the loss is says nothing about how it moves.")},
            hint("Move w by 1 in one component: by how much does one product move?",
                 "Write out x w for one row; then look at what stands before each w."),
            "The derivative of one row times w is that row, whatever w is. Six arrive, each times 1/6.");
        loss.backward();
        show("w.grad", w.grad());
        check_gradient();

        predict("Row 0 is 0.375 -1.250 0.500. To the first of w.grad this row alone brings",
                {right(0.0625).within(0.0005),
                 wrong(0.375, "So much its product moves. But how much of the loss is one product?"),
                 wrong(0.03125, "That is what it adds to the loss. In a slope w does not stand any more."),
                 wrong(-0.0625, "Its number is positive: more w, more loss."),
                 wrong(2.25, "A mean of six makes it smaller, not larger.")},
                hint("How much of the mean is one product of six?", "0.375, and what mean() does to it."),
                "0.375 / 6. Each row brings a sixth of itself, and w.grad is the sum of six such arrows.");
        auto arrows = table({"row", "brings", "sum so far"});
        const Tensor so_far = parameter(w.value().clone());  // collects the gradient so far
        for (int i = 0; i < 6; ++i) {
            const Tensor row = slice(x, 0, i, i + 1);
            const Tensor brought = grad(matmul(row, w) / 6, {w}).front();
            (matmul(row, so_far) / 6).backward();
            arrows.row(i, brought, so_far.grad());
        }
        check_equal("the sum of six arrows", w.grad(), so_far.grad());
        graph("full-batch", "Six rows, one w: each row counts a sixth", shares({}, w.grad(), {}));

        step(say("{} of SGD: w moves against the gradient, {} as far{}.",
                 capital(many_in_words(steps, "steps")), times_of(rate), steps > 1 ? " each" : ""));
        note("SGD, stochastic gradient descent, goes the learning rate times the gradient, downhill.");
        code(1);
        sgd_step({w}, rate);
        for (int more = 1; more < steps; ++more) sgd_step({w}, rate);  // a linear loss has a constant slope
        const auto after = mean(matmul(x, w));
        show("w", w);
        show("loss before", loss);
        show("loss after", after);
        show(say("{} |w.grad|^2", steps * rate), fall());
        note(say(
            "By so much a linear loss falls: {} times the sum of the squares of w.grad. It has no minimum.",
            steps * rate));
        check_fall(loss, after);
    }

    // ---- independent checks: sums by hand and in exact decimals -----------------------------------------------

    void check_loss(const Tensor& loss) {
        double by_hand = 0;
        for (std::size_t i = 0; i < 18; ++i) by_hand += values(x)[i] * values(w)[i % 3] / 6;
        check_close("loss: by hand", loss, by_hand, loss_bound);
        check_close("loss: in exact decimals", loss, -3.97205 / 6, loss_bound);
    }

    void check_gradient() {
        check("prints [-0.3536  0.0207 -0.6125]", to_string(w.grad()) == "[-0.3536  0.0207 -0.6125]");
        std::vector<double> means(3);
        for (std::size_t i = 0; i < 18; ++i) means[i % 3] += values(x)[i] / 6;
        // Each term has at most 9 roundings: 1 in x, 2 in the row's weight, 1 in the product and 5 in sums.
        check_close("the mean of each column", w.grad(), means, mean_columns(roundings(9)));
        check_close("in exact decimals", w.grad(), exact, mean_columns(roundings(9)));
    }

    double fall() const {
        return steps * rate * (std::pow(exact[0], 2) + std::pow(exact[1], 2) + std::pow(exact[2], 2));
    }
    void check_fall(const Tensor& before, const Tensor& after) {
        // The bound grows with the number of steps, because each step rounds w again.
        check_close(say("falls by {} |w.grad|^2", steps * rate), double(before.item()) - double(after.item()),
                    fall(), 4 * loss_bound * steps * std::max(1.0, steps * rate));
    }

    double magnitude() const {
        double sum = 0;
        for (std::size_t i = 0; i < 18; ++i) sum += std::abs(values(x)[i] * values(w)[i % 3]) / 6;
        return sum;
    }
    // The loss has at most 12 roundings: 1 in x, 5 in the dot product, and 6 in the mean.
    const double loss_bound = roundings(12) * magnitude();
    const std::vector<double> exact = exact_means();
};

const RegisterLesson<FullBatch> lesson({.number = 5,
                                        .slug = "full-batch",
                                        .title = "full batch",
                                        .minutes = 10,
                                        .steps = 5,
                                        .parameters = {learning_rate(0.1, 0.01, 1),
                                                       whole_number("steps", "steps of SGD", 1, 1, 20)}});

}  // namespace
