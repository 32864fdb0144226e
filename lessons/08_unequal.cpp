// Lesson 8: micro-batches of unequal sizes need the weights b / B, their shares of the rows.
#include "course/kit/window_gradient.hpp"

using Sizes = std::vector<std::int64_t>;

// Divides the loss of each micro-batch by their number, as for equal sizes.
static Array<real> mean_of_means(const Tensor& x, const Tensor& w, const Sizes& sizes) {
    w.zero_grad();
    for (const Tensor& micro : split(x, sizes)) (mean(matmul(micro, w)) / double(sizes.size())).backward();
    return w.grad().clone();
}

// Returns all 32 ways to cut six rows: each of the five gaps between two rows is cut or not.
static std::vector<Sizes> all_cuts() {
    std::vector<Sizes> cuts;
    for (unsigned gaps = 0; gaps < 32; ++gaps) {
        Sizes sizes{1};
        for (unsigned gap = 0; gap < 5; ++gap)
            if (gaps >> gap & 1)
                sizes.push_back(1);
            else
                ++sizes.back();
        cuts.push_back(sizes);
    }
    return cuts;
}

LESSON(one_of("items", "rows in the first micro-batch", 4, {2, 4, 5})) {
    const int first = setting("items"), second = 6 - first;
    const Sizes sizes{first, second};
    const Tensor x = toy::rows(), w = toy::weights();

    step("We split the six rows into two micro-batches. Their sizes are {} and {}.", first, second);
    std::vector<std::vector<double>> g;
    auto own = table({"rows", "size b", "gradient g of its mean"});
    for (const auto& [micro, rows] : toy::micro_batches(x, sizes)) {
        g.push_back(values(grad(mean(matmul(micro, w)), {w}).front()));
        own.row(rows, micro.shape()[0], g.back());
    }
    note("For equal micro-batches, we divided each loss by the number of micro-batches. We do so here:");
    code(2);
    const std::vector<Tensor> micros = split(x, sizes);
    for (auto& micro : micros) (mean(matmul(micro, w)) / 2).backward();
    const Array<real> of_means = w.grad().clone(), full = grad(mean(matmul(x, w)), {w}).front();

    ask("divided-by-n", "first", first, "second", second);
    auto both = table({"", "gradient"});
    both.row("full batch", row_text(full, 6));
    both.row("mean of the two means", row_text(of_means, 6));
    const std::vector<double> factors = ratios(of_means, full);
    show("ratio of the two gradients", factors);
    check("no single factor repairs the gradient", std::abs(factors[0] - factors[1]) > 0.1);

    ask("the-weight", "first", first, "share", first / 6.0);
    w.zero_grad();
    auto after = table({"rows", "share of the rows", "w.grad afterwards"});
    code(3);
    for (const auto& [micro, rows] : toy::micro_batches(x, sizes)) {
        const double share = double(micro.shape()[0]) / 6;
        (mean(matmul(micro, w)) * share).backward();
        after.row(rows, share, w.grad());  // in the end, w.grad has rounded at most 15 times
    }
    check_close("the weighted sum is the full batch", w.grad(), toy::mean_of_rows, toy::bound(15));
    auto shares = toy::shares(sizes, full);
    shares.divided = values(of_means), shares.weighed = values(w.grad());
    graph("unequal", "How much one row counts in a mean of means, and with the right weights", shares);

    step("How wrong was the mean of the two micro-batches' gradients? There is a formula for its error.");
    note("The mean of the two gradients is too small if the larger micro-batch has the larger gradient.");
    note("The covariance Cov(b, g) of size b and gradient g is the mean of (b - mean of b) (g - mean of g).");
    std::vector<double> error, formula;
    for (std::size_t j = 0; j < 3; ++j) {
        const double mean_b = (first + second) / 2.0, mean_g = (g[0][j] + g[1][j]) / 2;
        const double covariance =
            ((first - mean_b) * (g[0][j] - mean_g) + (second - mean_b) * (g[1][j] - mean_g)) / 2;
        error.push_back(values(of_means)[j] - values(full)[j]);
        formula.push_back(-covariance / mean_b);
    }
    auto compared = table({"", "for each component"});
    compared.row("mean of means - full batch", row_text(error, 6));
    compared.row("-Cov(b, g) / mean of b", row_text(formula, 6));  // 30 roundings; a row counts at most 3/6
    check_close("the formula gives the error", error, formula, scaled(toy::bound(30), 3));

    ask("lucky-sizes");
    const Tensor one = parameter(Array<real>::full({1}, real(1), options().device));
    const Tensor even = Array<real>({6, 1}, {1, 0, 0, 1, 1, 1}, options().device);
    show("mean of the three means", mean_of_means(even, one, {1, 2, 3}));
    show("mean of the six rows", grad(mean(matmul(even, one)), {one}).front());
    check_close("both means are 4/6", mean_of_means(even, one, {1, 2, 3}), {4.0 / 6}, roundings(12));

    ask("unknown-total");
    const Tensor v = zeros({3});
    Sgd<real> sgd({v}, {.learning_rate = 1});  // one step from v = 0 ends at minus the gradient
    Window<real> window(sgd);
    code(2);
    for (auto& micro : micros) window.add(Loss(matmul(micro, v)));
    const auto finished = window.finish();
    show("rows that the window counted", std::int64_t(finished.count));
    show("gradient of the window", scaled(v, -1));
    check_close("it is the full batch", scaled(v, -1), toy::mean_of_rows, toy::bound(15));  // 15 roundings

    step("Is the class Window always right? We split six rows into micro-batches in all 32 ways.");
    const auto by_window = [&](const Sizes& cut) {
        const Tensor u = zeros({3});
        return window_gradient(u, [&](Window<real>& all) {
            for (const Tensor& micro : split(x, cut)) all.add(Loss(matmul(micro, u)));
        });
    };
    double worst = 0, of_window = 0;
    Sizes worst_cut;
    for (const Sizes& cut : all_cuts()) {
        of_window = std::max(of_window, furthest(by_window(cut), toy::mean_of_rows));
        const double error_of_means = furthest(mean_of_means(x, w, cut), full);
        if (error_of_means > worst) worst = error_of_means, worst_cut = cut;
    }
    show("largest error of a mean of means", worst, "sizes with this error", worst_cut);
    check("the window is right in all 32 ways", of_window <= toy::bound(12)[1]);  // 12 roundings
    check_close("and for sizes 4, 0, 2", by_window({4, 0, 2}), toy::mean_of_rows, toy::bound(12));
}
