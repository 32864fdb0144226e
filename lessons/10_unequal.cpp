// Lesson 10: micro-batches of unequal sizes weigh b_k / B each; the mean of their means is another gradient.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tally/lesson/lesson.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

using Sizes = std::vector<std::int64_t>;

template <class S> Var<Array<S>> toy() {
    return Array<S>({6, 3},
                    {0.375, -1.25, 0.5,           //
                     -1.125, 0.5, -0.875,         //
                     0.625, 1.0, -1.5,            //
                     -0.25, -0.375, 0.25,         //
                     -1.5, 0.75, -0.625,          //
                     -0.2466, -0.5010, -1.4250},  //
                    options().device);
}

template <class S> Var<Array<S>> weights(double a, double b, double c) {
    return parameter(Array<S>({3}, {S(a), S(b), S(c)}, options().device));
}

// What a window makes of micro-batches in these sizes. The slope of a linear loss is the same everywhere, so
// that one step of length 1 from w = 0 ends at minus the gradient, digit for digit.
template <class S> std::vector<S> by_window(const Var<Array<S>>& x, const Sizes& sizes) {
    const auto w = weights<S>(0, 0, 0);
    Sgd<S> sgd({w}, {.learning_rate = 1});
    Window<S> window(sgd);
    for (const auto& micro : split(x, sizes)) window.add(counted(matmul(micro, w)));
    window.finish();
    std::vector<S> gradient = w.value().to_vector();
    for (S& component : gradient) component = -component;
    return gradient;
}

template <class S>
std::vector<S> mean_of_means(const Var<Array<S>>& x, const Var<Array<S>>& w, const Sizes& sizes) {
    w.zero_grad();
    for (const auto& micro : split(x, sizes)) (mean(matmul(micro, w)) / double(sizes.size())).backward();
    return w.grad().to_vector();
}

// All ways to cut six rows into pieces that are not empty: after each of the first five rows, cut or not.
std::vector<Sizes> all_cuts() {
    std::vector<Sizes> cuts;
    for (unsigned after = 0; after < 32; ++after) {
        Sizes sizes{1};
        for (unsigned row = 0; row < 5; ++row) {
            if (after >> row & 1)
                sizes.push_back(1);
            else
                ++sizes.back();
        }
        cuts.push_back(sizes);
    }
    return cuts;
}

std::string six_digits(const std::vector<double>& numbers) {
    std::string text;
    for (const double number : numbers) {
        const std::string digits = std::to_string(number);
        text += (text.empty() ? "" : " ") + (digits[0] == '-' ? digits : " " + digits);
    }
    return text;
}
template <class S> std::string six_digits(const std::vector<S>& numbers) {
    return six_digits(std::vector<double>(numbers.begin(), numbers.end()));
}

template <class S> Picture drawn() {
    Watch watch;
    auto w = weights<S>(0.5, -1.25, 0.75);
    Picture picture("Four rows and two: each micro-batch counts as many sixths as it has rows");
    picture.name(w, "w");
    for (const auto& micro : split(toy<S>(), Sizes{4, 2})) {
        const auto rows = micro.shape()[0];
        auto loss = mean(matmul(micro, w)) * (double(rows) / 6);
        picture.name(micro, std::to_string(rows) + " rows")
            .name(loss, "loss x " + std::to_string(rows) + "/6");
        picture.backward(loss);
    }
    return picture;
}

// The magnitudes of a column add up to this, in the largest.
template <class S> double largest_column(const Var<Array<S>>& x) {
    const std::vector<S> numbers = x.value().to_vector();
    double columns[3] = {};
    for (std::size_t i = 0; i < numbers.size(); ++i) columns[i % 3] += std::abs(double(numbers[i]));
    return *std::max_element(columns, columns + 3);
}

template <class S> void unequal() {
    const auto x = toy<S>(), w = weights<S>(0.5, -1.25, 0.75);
    const Sizes four_and_two{4, 2};
    // A row weighs 1/4 at most here.
    const double bound = gamma_bound<S>(12) * largest_column(x) / 4;

    // The truth in whole numbers: the toy in units of 1/10000, summed exactly.
    std::int64_t sum_of_four[3] = {}, sum_of_two[3] = {};
    const std::vector<S> numbers = x.value().to_vector();
    for (std::size_t i = 0; i < numbers.size(); ++i)
        (i < 12 ? sum_of_four : sum_of_two)[i % 3] += std::llround(double(numbers[i]) * 10000);
    std::vector<double> exact_means, exact_truth, exact_difference;
    for (int j = 0; j < 3; ++j) {
        const std::int64_t of_means = sum_of_four[j] + 2 * sum_of_two[j];  // in eighths
        const std::int64_t of_rows = sum_of_four[j] + sum_of_two[j];       // in sixths
        exact_means.push_back(double(of_means) / 80000);
        exact_truth.push_back(double(of_rows) / 60000);
        exact_difference.push_back(double(3 * of_means - 4 * of_rows) / 240000);
    }

    step("Six rows as 4 + 2: what each micro-batch's own mean sends back.");
    auto own = table({"rows", "b", "g, the gradient of its mean"});
    std::vector<std::vector<double>> g;
    for (const auto& micro : split(x, four_and_two)) {
        const Array<S> gradient = grad(mean(matmul(micro, w)), {w}).front();
        own.row(g.empty() ? "0-3" : "4-5", micro.shape()[0], gradient);
        const std::vector<S> components = gradient.to_vector();
        g.emplace_back(components.begin(), components.end());
    }
    check_close("g of the four, in exact decimals", g[0], {-0.375 / 4, -0.125 / 4, -1.625 / 4}, bound);
    check_close("g of the two", g[1], {-1.7466 / 2, 0.249 / 2, -2.05 / 2}, 2 * bound);

    predict("The sum of both, divided by N = 2 as in lesson 7, is",
            {"the full gradient", "too long", "another direction"}, answer(3),
            "What does a row of the four weigh? And a row of the two?", "A row weighs 1/8 or 1/4, not 1/6.");
    const std::vector<S> full = grad(mean(matmul(x, w)), {w}).front().to_vector();
    const std::vector<S> of_means = mean_of_means(x, w, four_and_two);
    auto both = table({"", "gradient"});
    both.row("full batch", six_digits(full));
    both.row("mean of means", six_digits(of_means));
    check_close("full", full, exact_truth, bound);
    check_close("means", of_means, exact_means, bound);
    check("prints these digits", six_digits(full) == "-0.353600  0.020667 -0.612500" &&
                                     six_digits(of_means) == "-0.483525  0.046625 -0.715625");

    step("The weights b / B: each micro-loss times 4/6 or 2/6, its share of the rows.");
    w.zero_grad();
    auto after = table({"rows", "share", "w.grad after it"});
    int row = 0;
    for (const auto& micro : split(x, four_and_two)) {
        if (row == 0) code(2);
        const double share = double(micro.shape()[0]) / 6;
        (mean(matmul(micro, w)) * share).backward();
        after.row(row == 0 ? "0-3" : "4-5", share, w.grad());
        row += 4;
    }
    check("prints [-0.3536  0.0207 -0.6125]", to_string(w.grad()) == "[-0.3536  0.0207 -0.6125]");
    check_close("in exact decimals", w.grad(), exact_truth, bound);
    const Picture picture = drawn<S>();
    graph("unequal", picture.svg(), picture.dot());

    predict("How wrong? Minus the covariance of b and g, over the mean of", {"b", "g", "b and g"}, answer(1),
            "If b says nothing about g, the sizes do not matter.");
    const auto by_formula = [](const Sizes& sizes, const std::vector<double>& gradients) {
        const double n = double(sizes.size());
        double b_mean = 0, g_mean = 0, covariance = 0;
        for (std::size_t k = 0; k < sizes.size(); ++k) {
            b_mean += double(sizes[k]) / n;
            g_mean += gradients[k] / n;
        }
        for (std::size_t k = 0; k < sizes.size(); ++k)
            covariance += (double(sizes[k]) - b_mean) * (gradients[k] - g_mean) / n;
        return -covariance / b_mean;
    };
    std::vector<double> measured, formula;
    for (std::size_t j = 0; j < 3; ++j) {
        measured.push_back(double(of_means[j]) - double(full[j]));
        formula.push_back(by_formula(four_and_two, {g[0][j], g[1][j]}));
    }
    auto compared = table({"how wrong", "a component each"});
    compared.row("mean of means - truth", six_digits(measured));
    compared.row("-Cov(b, g) / mean b", six_digits(formula));
    check_close("the formula", measured, formula, 4 * bound);
    check_close("in exact decimals", measured, exact_difference, 2 * bound);
    check("prints [-0.129925 0.025958 -0.103125]",
          six_digits(exact_difference) == "-0.129925  0.025958 -0.103125");
    // Sizes 1, 2, 3 and gradients 1, 0, 1: the covariance is 0.
    const auto one = parameter(Array<S>::full({1}, S(1), options().device));
    const Var<Array<S>> even = Array<S>({6, 1}, {1, 0, 0, 1, 1, 1}, options().device);
    const double lucky = double(mean_of_means(even, one, {1, 2, 3})[0]);
    show("sizes 1 2 3, g 1 0 1: mean of means", lucky);
    check_close("truth: 4/6", lucky, 4.0 / 6, gamma_bound<S>(12));

    predict("And if nobody knows B before the last micro-batch has come?",
            {"keep all losses", "divide once, at the end", "there is no way"}, answer(2),
            "A sum needs no weight.", "finish() divides by what was counted.");
    const auto v = weights<S>(0, 0, 0);
    Sgd<S> sgd({v}, {.learning_rate = 1});
    Window<S> window(sgd);
    code(2);
    for (const auto& micro : split(x, four_and_two)) window.add(counted(matmul(micro, v)));
    const auto finished = window.finish();
    std::vector<S> found = v.value().to_vector();
    for (S& component : found) component = -component;
    show("the window's gradient", found);
    check_equal("its count", finished.count, 6);
    check_close("found", found, exact_truth, bound);
    std::vector<S> windows, means;
    std::vector<double> truths;
    for (const Sizes& sizes : all_cuts())
        for (std::size_t j = 0; j < 3; ++j) {
            windows.push_back(by_window(x, sizes)[j]);
            means.push_back(mean_of_means(x, w, sizes)[j]);
            truths.push_back(exact_truth[j]);
        }
    std::size_t worst = 0;
    const auto off = [&](std::size_t i) { return std::abs(double(means[i]) - truths[i]); };
    for (std::size_t i = 0; i < truths.size(); ++i)
        if (off(i) > off(worst)) worst = i;
    const Sizes worst_cut = all_cuts()[worst / 3];
    std::string cut;
    for (const std::int64_t size : worst_cut) cut += (cut.empty() ? "" : " + ") + std::to_string(size);
    show("mean of means, the worst of 32 cuts, " + cut + ": off by", off(worst));
    check_close("all 32", windows, truths, bound);
    check_close("4 + 0 + 2", by_window(x, {4, 0, 2}), exact_truth, bound);
}

int main(int argc, char** argv) {
    return run(argc, argv,
               {.number = 10, .slug = "unequal", .title = "unequal micro-batches", .minutes = 15, .steps = 5},
               unequal<float>, unequal<double>);
}
