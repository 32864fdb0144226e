// Lesson 6: micro-batch gradients left to add up are N times too large.
#include <cmath>
#include <string>
#include <vector>

#include "tally/lesson/lesson.hpp"
#include "tally/tally.hpp"

using namespace tally;
using namespace tally::lesson;

template <class S> Picture drawn(const Var<Array<S>>& x, const Array<S>& weights) {
    Watch watch;
    auto w = parameter(weights.clone());
    Picture picture("Three micro-batches, nothing divided: w receives three times the gradient");
    picture.name(w, "w");
    int row = 0;
    for (const auto& micro : split(x, 2)) {
        picture.name(micro, "rows " + std::to_string(row) + "-" + std::to_string(row + 1));
        picture.backward(mean(matmul(micro, w)));
        row += 2;
    }
    return picture;
}

template <class S> void forgot_to_divide() {
    auto x = constant(Array<S>({6, 3},
                               {0.375, -1.25, 0.5,           //
                                -1.125, 0.5, -0.875,         //
                                0.625, 1.0, -1.5,            //
                                -0.25, -0.375, 0.25,         //
                                -1.5, 0.75, -0.625,          //
                                -0.2466, -0.5010, -1.4250},  //
                               options().device));
    auto w = parameter(Array<S>({3}, {0.5, -1.25, 0.75}, options().device));

    step("The full batch once more: six rows, one loss, the gradient we want.");
    code(2);
    auto loss = mean(matmul(x, w));
    loss.backward();
    const auto full = w.grad().clone();
    show("loss", loss);
    show("w.grad", full);
    check("prints [-0.3536  0.0207 -0.6125]", to_string(full) == "[-0.3536  0.0207 -0.6125]");

    step("Three micro-batches of 2 rows. w.grad is NOT cleared in between.");
    w.zero_grad();
    auto after = table({"rows", "loss", "this micro-batch", "w.grad after it"});
    std::vector<double> alone;
    double losses = 0;
    int row = 0;
    for (const auto& micro : split(x, 2)) {
        if (row == 0) code(2);
        auto part = mean(matmul(micro, w));
        part.backward();
        const auto this_one = grad(mean(matmul(micro, w)), {w}).front().to_vector();  // touches no leaf
        after.row(std::to_string(row) + "-" + std::to_string(row + 1), part, this_one, w.grad());
        alone.insert(alone.end(), this_one.begin(), this_one.end());
        losses += static_cast<double>(part.item()) / 3;
        row += 2;
    }
    const auto sum = w.grad().clone();
    const Picture picture = drawn(x, w.value());
    graph("forgot-to-divide", picture.svg(), picture.dot());
    check("prints [-1.0608  0.0620 -1.8375]", to_string(sum) == "[-1.0608  0.0620 -1.8375]");
    check_close("the means of two rows", alone,
                {-0.375, -0.375, -0.1875, 0.1875, 0.3125, -0.625, -0.8733, 0.1245, -1.025},
                gamma_bound<S>(4) * 2);
    check_close("mean of the losses = full loss", losses, -3.97205 / 6, gamma_bound<S>(12) * 2);

    predict("[-1.0608 0.0620 -1.8375] is the full-batch gradient times",
            {"1", "2", "3", "6", "no fixed factor"}, answer(3),
            "A row weighs 1/2 in a micro-batch of two, and 1/6 in the full batch.");
    show("full batch", full);
    show("sum of 3x2", sum);
    // 3 x full: weight, product, 5 additions, times 3, so 8 roundings at most. The sum of the halves is exact
    // but for its last addition, and that fits into what later rows leave unused of their 8.
    std::vector<double> bound(3);
    for (std::size_t i = 0; i < 18; ++i)
        bound[i % 3] += 3 * gamma_bound<S>(8) * std::abs(static_cast<double>(x.value().to_vector()[i])) / 6;
    std::vector<S> three_times;
    for (const S component : full.to_vector()) three_times.push_back(3 * component);
    check_close("sum of three = 3 x full", sum, three_times, bound);
    check_close("the sum, in exact decimals", sum, {-1.0608, 0.0620, -1.8375}, bound);

    predict("So what? Plain SGD with rate 0.1 takes a step that is",
            {"off course", "3 times as long", "the same", "1/3 as long"}, answer(2),
            "The direction is right, the length is not.");
    auto right = parameter(w.value().clone()), wrong = parameter(w.value().clone());
    mean(matmul(x, right)).backward();
    for (const auto& micro : split(x, 2)) mean(matmul(micro, wrong)).backward();
    code(1);
    sgd_step({right, wrong}, 0.1);
    auto moves = table({"", "w", "moved by"});
    const auto way = [&w](const Var<Array<S>>& to) {
        std::vector<double> difference;
        for (std::size_t i = 0; i < 3; ++i)
            difference.push_back(static_cast<double>(to.value().to_vector()[i]) -
                                 static_cast<double>(w.value().to_vector()[i]));
        return difference;
    };
    moves.row("before", w, "");
    moves.row("full batch", right, way(right));
    moves.row("sum of 3x2", wrong, way(wrong));
    std::vector<double> expected, step_bound, ratios;
    for (std::size_t i = 0; i < 3; ++i) {
        ratios.push_back(way(wrong)[i] / way(right)[i]);
        expected.push_back(3 * way(right)[i]);
        // 17 roundings on the way to the two steps, and one each where w + step is rounded to a new w.
        const double ends = std::abs(double(wrong.value().to_vector()[i])) +
                            3 * std::abs(double(right.value().to_vector()[i]));
        step_bound.push_back(0.1 * bound[i] * gamma_bound<S>(17) / gamma_bound<S>(8) +
                             gamma_bound<S>(1) * ends);
    }
    check("before rounding: 3.00 3.00 3.00 times as far",
          row_text(Numbers(ratios), 2) == " 3.00  3.00  3.00");
    check_close("moved 3 times as far", way(wrong), expected, step_bound);
    check_close("0.3 x g", way(wrong), {0.3 * 2.1216 / 6, -0.3 * 0.1240 / 6, 0.3 * 3.6750 / 6}, step_bound);
    note("As if the rate were 0.3. What was stable may not be any more.");
}

int main(int argc, char** argv) {
    return run(
        argc, argv,
        {.number = 6, .slug = "forgot-to-divide", .title = "forgot to divide", .minutes = 10, .steps = 4},
        forgot_to_divide<float>, forgot_to_divide<double>);
}
