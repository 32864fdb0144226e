// Lesson 5: the gradient of a batch is the mean of its items' gradients: six arrows back to one parameter.
#include <cmath>
#include <string>
#include <vector>

#include "tally/lesson/lesson.hpp"
#include "tally/tally.hpp"

using namespace tally;
using namespace tally::lesson;

// Forward and backward with every item drawn by itself.
template <class S> Picture drawn(const Var<Array<S>>& x, const Array<S>& weights) {
    Watch watch;
    auto w = parameter(weights.clone());
    Picture picture("Six items, one w: forward, and six gradients back that are added");
    picture.name(w, "w");
    std::vector<Var<Array<S>>> products;
    for (const auto& row : split(x, 1)) {
        picture.name(row, "row " + std::to_string(products.size()));
        products.push_back(matmul(row, w));
    }
    picture.backward(mean(concat(products)), "mean of six");
    return picture;
}

template <class S> void full_batch() {
    auto x = constant(Array<S>({6, 3},
                               {0.375, -1.25, 0.5,           //
                                -1.125, 0.5, -0.875,         //
                                0.625, 1.0, -1.5,            //
                                -0.25, -0.375, 0.25,         //
                                -1.5, 0.75, -0.625,          //
                                -0.2466, -0.5010, -1.4250},  //
                               options().device));
    auto w = parameter(Array<S>({3}, {0.5, -1.25, 0.75}, options().device));

    step("The toy: six items of three numbers, and three weights.");
    show("x", x);
    show("w", w);
    show("w.grad", gradient(w));

    step("Forward: six dot products, and their mean.");
    code(2);
    auto y = matmul(x, w);
    auto loss = mean(y);
    show("y", y);
    show("loss", loss);
    // By hand; each dot product has 3 + 2 roundings at most, the mean 5 + 1, and x itself may be rounded.
    double by_hand = 0, magnitude = 0;
    for (std::size_t i = 0; i < 18; ++i) {
        const double term = double(x.value().to_vector()[i]) * double(w.value().to_vector()[i % 3]);
        by_hand += term / 6;
        magnitude += std::abs(term) / 6;
    }
    check_close("loss: by hand", loss, by_hand, gamma_bound<S>(12) * magnitude);
    check_close("loss: in exact decimals", loss, -3.97205 / 6, gamma_bound<S>(12) * magnitude);

    predict("Each of the six products counts 1/6 of the loss. w.grad will be",
            {"the sum of the rows", "the mean of the rows", "w / 6", "the loss times w"}, answer(2),
            "The derivative of x w is the row x, whatever w is. Six rows arrive, each times 1/6.");
    loss.backward();
    show("w.grad", w.grad());
    check("prints [-0.3536  0.0207 -0.6125]", to_string(w.grad()) == "[-0.3536  0.0207 -0.6125]");
    // A row meets 2 roundings in its weight, 1 in its product, 5 in additions, 1 on the way
    // into the computer.
    std::vector<double> column_means(3), bound(3);
    for (std::size_t i = 0; i < 18; ++i) {
        column_means[i % 3] += double(x.value().to_vector()[i]) / 6;
        bound[i % 3] += gamma_bound<S>(9) * std::abs(double(x.value().to_vector()[i])) / 6;
    }
    const std::vector<double> exact{-2.1216 / 6, 0.1240 / 6, -3.6750 / 6};  // column sums in exact decimals
    check_close("the mean of each column", w.grad(), column_means, bound);
    check_close("in exact decimals", w.grad(), exact, bound);

    step("Six arrows back to one w: row i brings x_i / 6, and w.grad is their sum.");
    auto arrows = table({"row", "brings", "sum so far"});
    const auto so_far = parameter(w.value().clone());  // its gradient is
    int number = 0;
    for (const auto& row : split(x, 1)) {
        (matmul(row, so_far) / 6).backward();
        arrows.row(number++, grad(matmul(row, w) / 6, {w}).front().to_vector(), so_far.grad().to_vector());
    }
    check_equal("the sum of six arrows", w.grad(), so_far.grad());
    const Picture picture = drawn(x, w.value());
    graph("full-batch", picture.svg(), picture.dot());

    step("One step of SGD: w moves against the gradient, 0.1 times as far.");
    const double slope = std::pow(-2.1216 / 6, 2) + std::pow(0.1240 / 6, 2) + std::pow(-3.6750 / 6, 2);
    code(1);
    sgd_step({w}, 0.1);
    const auto after = mean(matmul(x, w));
    show("w", w);
    show("loss before", loss);
    show("loss after", after);
    note("A linear loss falls by exactly 0.1 |w.grad|^2. It has no minimum.");
    check_close("falls by 0.1 |w.grad|^2", double(loss.item()) - double(after.item()), 0.1 * slope,
                4 * gamma_bound<S>(12) * magnitude);
}

int main(int argc, char** argv) {
    return run(argc, argv,
               {.number = 5, .slug = "full-batch", .title = "full batch", .minutes = 10, .steps = 5},
               full_batch<float>, full_batch<double>);
}
