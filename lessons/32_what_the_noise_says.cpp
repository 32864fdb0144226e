// Lesson 32: two norms that a window computes anyway measure the noise of its gradient.
#include "noisy_items.hpp"

// Returns the sum of the losses of `count` items, up to a constant, and the count.
static Loss<Array<real>> loss_of(const Tensor& w, int count, int draw) {
    const Tensor sum_of_losses = sum(pow(w - mean_of_items(count, draw), 2)) * (count / 2.0);
    return {sum_of_losses, Tensor(Array<real>({}, {real(count)}).to(options().device))};
}
static double gradient_square(const Tensor& w, int count, int draw) {
    return square_of(grad(loss_of(w, count, draw).mean(), {w}).front());
}

struct Estimates {
    std::vector<double> tens, trace, square;  // of each window: its number / 10, and both estimates
    double ratios = 0, largest = 0;           // sum, and largest magnitude, of all trace / square
    int count = 0, below_0 = 0;
    Window<real>::Noise sum;
};
// Estimates the noise in 100 windows of `count` items, in n micro-batches each. The weights do not move.
static Estimates estimate(const Tensor& w, int count, int n) {
    Sgd<real> sgd({w}, {.learning_rate = 0});
    Window<real> window(sgd, {.noise = true});
    Estimates all{};
    all.count = count;
    for (int update = 0; update < 100; ++update) {
        for (int micro = 0; micro < n; ++micro) window.add(loss_of(w, count / n, n * update + micro));
        const Window<real>::Noise one = window.finish().noise;
        all.tens.push_back((update + 1) / 10.0);
        all.trace.push_back(one.trace()), all.square.push_back(one.square());
        all.ratios += one.trace() / one.square();
        all.largest = std::max(all.largest, std::abs(one.trace() / one.square()));
        all.below_0 += one.square() < 0;
    }
    all.sum = window.noise();
    return all;
}

LESSON(one_of("items", "items of the noise scale", 100, {100, 200, 400}),
       one_of("micro", "micro-batches of a window", 2, {2, 4})) {
    const int scale = setting("items"), n = setting("micro");
    const int b = scale / 10, few = scale / 25;  // items of a micro-batch, and of a small window
    const Tensor w = weights_for(scale);
    const double trace = numbers_of_item, G2 = trace / scale;  // tr(Sigma), |G|^2

    step("An item x is 1000 random numbers around 0, each with the variance 1.");
    note("The loss of an item is |w - x|^2 / 2, and its gradient is w - x.");
    note("The mean over all items is the true gradient, G = w. The rest of an item's gradient is noise.");
    note("A gradient has 1000 numbers. The sum of their variances, tr(Sigma), measures the noise.");
    show("tr(Sigma), |G|^2", {trace, G2});
    show("|g|^2 of one item", gradient_square(w, 1, 0));
    note("The gradient g of one item is nearly all noise. A training never computes G.");

    ask("of-b-items", "b", b, "G2", G2, "noise", trace / b, "right", G2 + trace / b, "all", (G2 + trace) / b);
    auto sizes = table({"items", "mean |g|^2 of 100", "expected"});
    std::vector<double> bounds;
    for (const int count : {1, b, n * b, scale, 10 * scale}) {
        double sum = 0;
        for (int draw = 0; draw < 100; ++draw) sum += gradient_square(w, count, draw);
        sizes.row(count, sum / 100, G2 + trace / count);
        // |g|^2 has the variance 2 * 1000 / items^2 + 4 |G|^2 / items. The bound is five standard deviations.
        bounds.push_back(5 * std::sqrt((2 * trace / count + 4 * G2) / count / 100));
    }
    check_close("expected squares", sizes.column("mean |g|^2 of 100"), sizes.column("expected"), bounds);
    note("At the noise scale, {} items, the noise tr(Sigma)/b equals |G|^2.", scale);
    note("Much smaller batches give mostly noise, much larger batches little noise.");

    ask("two-equations");
    const double solved = (8.0 - 5.0) / (1 / 10.0 - 1 / 20.0), rest = 5 - solved / 20;
    show("tr(Sigma), |G|^2, noise scale", {solved, rest, solved / rest});

    step("A window adds the gradients of one update: here {} micro-batches of {} items.", n, b);
    note("The window measures |g|^2 for two gradients: of the first micro-batch, and of all items.");
    Sgd<real> sgd({w}, {.learning_rate = 0});
    code(3);
    Window<real> window(sgd, {.noise = true});
    for (int k = 0; k < n; ++k) window.add(loss_of(w, b, k));
    const Window<real>::Noise one = window.finish().noise;
    Tensor mean_gradient = w;
    for (int k = 0; k < n; ++k) mean_gradient = mean_gradient - mean_of_items(b, k) / n;
    const double of_first = gradient_square(w, b, 0), of_all = square_of(mean_gradient);
    const double by_hand = (of_first - of_all) / (1.0 / b - 1.0 / (n * b));  // multiplies errors by up to n b
    const Window<real>::Noise hundred = estimate(w, n * b, n).sum;
    show("|g|^2: first, all", {of_first, of_all});
    auto both = table({"", "tr(Sigma)", "|G|^2"});
    both.row("true values", trace, G2);
    both.row("one window", one.trace(), one.square());
    both.row("mean of 100 windows", hundred.trace(), hundred.square());
    check_close("tr(Sigma) by hand", one.trace(), by_hand, roundings(16 * n) * of_first * n * b);
    note("Estimates of tr(Sigma) and |G|^2 are right on average. But one window says little about |G|^2.");

    ask("below-zero", "few", few, "large", G2 + trace / few, "noise", trace / few);
    auto windows = table({"items", "error of tr(Sigma)", "error of |G|^2", "its likely error", "below 0"});
    std::vector<Estimates> runs;
    for (const int count : {few, scale / 5, 2 * scale}) {
        runs.push_back(estimate(w, count, n));
        windows.row(count, runs.back().sum.trace() / trace - 1, runs.back().sum.square() / G2 - 1,
                    likely_error(double(scale) / count, n), runs.back().below_0);
    }
    note("The table shows relative errors of the mean estimates of 100 windows.");
    note("Windows of few items measure the noise well, but |G|^2 badly.");
    const std::vector<Plane::Series> estimates{{"|G|^2", runs[0].tens, scaled(runs[0].square, 1 / G2)},
                                               {"tr(Sigma)", runs[0].tens, scaled(runs[0].trace, 1 / trace)}};
    graph("what-the-noise-says", say("100 windows of {} items", few),
          Plane{"windows, in tens", "estimate / true value", estimates, Plane::Scale::equal, "true value", 0,
                1});
    // The expected number is 29 to 33 for these settings, and five standard deviations are 25.
    check_close("about a third of the small windows are below 0", double(runs[0].below_0), 32.0, 25);
    check_close("|G|^2: off by at most 5 likely errors", windows.column("error of |G|^2"), {0.0, 0.0, 0.0},
                scaled(windows.column("its likely error"), 5));

    ask("how-to-combine");
    auto ratios = table({"items", "ratio of sums", "mean of ratios", "largest |ratio|", "noise scale"});
    for (const Estimates& run : runs)
        ratios.row(run.count, run.sum.traces / run.sum.squares, run.ratios / 100, run.largest, scale);
    const double measured = runs[2].sum.scale().value();
    check_close("large windows measure the noise scale", measured, scale, 0.2 * scale);
    check("one small window is far off", runs[0].largest > 2 * scale);
    note("The largest windows estimate a noise scale of {} items.", short_number(measured));
}
