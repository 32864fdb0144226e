// Lesson 34: processes that share a batch add their gradients, and divide once by the number of all rows.
#include "shared_updates.hpp"

// Makes a step with the gradient sum / divisor, and returns the change of the weights.
template <class Optimizer>
static std::vector<double> moved(const Array<real>& gradient, double divisor, double rate) {
    const Tensor w = toy::weights();
    (sum(w * constant(gradient)) / divisor).backward();
    Optimizer({w}, {.learning_rate = rate}).step();
    return values(w - toy::weights());
}

// An item with the number c has the loss (w - c)^2 / 2, and its gradient is w - c.
static double loss(double w, double a, double b) { return ((w - a) * (w - a) + (w - b) * (w - b)) / 2; }

LESSON(one_of("ranks", "processes that share the batch", 3, {2, 3})) {
    const Tensor x = toy::rows(), w = toy::weights();  // six rows of three numbers, and three weights
    const int p = setting("ranks"), each = 6 / p;

    step("A process is called a rank. Ranks: {}, rows in each: {}.", p, each);
    note("Each rank has its own memory and its own copy of w. All ranks run these lines:");
    code(3);
    const auto means = on_ranks([&](ProcessGroup& ranks) {
        const Tensor own = split(x, each)[ranks.rank()];
        return grad(mean(matmul(own, w)), {w}).front().to_vector();
    });
    auto gradients = table({"rank", "rows", "gradient of the mean"});
    for (int rank = 0; rank < p; ++rank)
        gradients.row(rank, toy::micro_batches(x, each)[rank].rows, means[rank]);

    ask("the-sum", "p", p, "each", each);
    code(3);
    const auto sums = on_ranks([&](ProcessGroup& ranks) {
        const Array<real> own({3}, means[ranks.rank()]);
        return ranks.all_reduce(own).to_vector();
    });  // with the gradients, a sum rounds at most 24 times
    const Array<real> full = grad(mean(matmul(x, w)), {w}).front(), sum({3}, sums[0], options().device);
    show("one process, six rows", full, "sum over the ranks", sum, "sum / one process", ratios(sum, full));
    check_close("P times the mean of the rows", sum, scaled(toy::mean_of_rows, p), scaled(toy::bound(24), p));
    check_equal("the last rank has the same sum", sums[p - 1], sums[0]);

    ask("divided-twice", "p", p);
    auto steps = table({"sum divided by", "SGD moves w by", "Adam moves w by"});
    for (const int divisor : {p, p * p})
        steps.row(divisor, moved<Sgd<real>>(sum, divisor, 1), moved<Adam<real>>(sum, divisor, 0.1));
    note("The learning rates are 1 for SGD and 0.1 for Adam.");

    std::vector<std::int64_t> sizes{4, 2, 0};
    sizes.resize(p);
    ask("the-denominator", "p", p, "sizes", sizes);
    code(3);
    const auto add_up = [](auto& window, const auto& rows, const auto& v) {
        if (rows.shape()[0] > 0) window.add(Loss(matmul(rows, v)));
        return window.finish().count;  // adds, divides once, makes a step
    };
    const auto updates = on_ranks([&](ProcessGroup& here) {
        const Tensor v = zeros({3});
        Sgd<real> sgd({v}, {.learning_rate = 1});
        DataParallel<real> ranks(here);
        Window<real> window(sgd, {}, &ranks);
        const double count = add_up(window, split(x, sizes)[here.rank()], v);
        const std::vector<double> step = values(v);
        return std::vector{-step[0], -step[1], -step[2], count};
    });
    const Tensor four = mean(matmul(slice(x, 0, 0, 4), w)), two = mean(matmul(slice(x, 0, 4, 6), w));
    auto ways = table({"", "gradient", "divided by"});
    ways.row("mean of two means", grad((four + two) / 2, {w}).front(), 2);
    ways.row("window over the ranks", std::vector(updates[0].begin(), updates[0].end() - 1),
             int(updates[0][3]));
    ways.row("one process", full, 6);
    note("A rank without rows also calls finish(), which ends the update, and makes the same step.");
    check_equal("all ranks make the same step", updates[p - 1], updates[0]);

    std::vector<int> firsts{1, 3, 8}, seconds{2, 5, 11};
    firsts.resize(p), seconds.resize(p);
    const double first = mean_of({firsts.begin(), firsts.end()}),
                 second = mean_of({seconds.begin(), seconds.end()});
    ask("too-early", "firsts", firsts, "seconds", seconds, "right", first + 2, "late", first + second,
        "first", first);
    code(3);
    const auto ends = on_ranks([&](ProcessGroup& ranks) {
        const double early = mean_over(ranks, firsts[ranks.rank()]);
        return early + seconds[ranks.rank()];
    });
    auto early = table({"rank", "first", "second", "averaged too early", "averaged at the end"});
    for (int rank = 0; rank < p; ++rank)
        early.row(rank, firsts[rank], seconds[rank], ends[rank], first + second);
    check_close("the mean over the ranks is right", mean_of(ends), first + second, 1e-6);  // of floats

    ask("the-log");
    const auto copies = on_ranks([&](ProcessGroup& ranks) {
        std::vector<double> v{0};
        for (int update = 0; update < 30; ++update) {
            const double averaged = mean_over(ranks, v.back() - firsts[ranks.rank()]);
            v.push_back(v.back() - 0.25 * (averaged + (v.back() - seconds[ranks.rank()])));
        }
        return v;
    });
    std::vector<double> right{0};
    for (int update = 0; update < 30; ++update)
        right.push_back(right.back() - 0.25 * (right.back() - first + right.back() - second));
    auto training = table({"update", "loss, rank 0", "loss, right training", "w, rank 0", "w, last rank"});
    for (const int update : {0, 1, 10, 30})
        training.row(update, loss(copies[0][update], 1, 2), loss(right[update], 1, 2), copies[0][update],
                     copies[p - 1][update]);

    step("A Window, which adds an update's gradients, compares the ranks' weights when you construct it.");
    const auto errors =
        on_ranks([&](ProcessGroup& ranks) { return error_of_window(ranks, copies[ranks.rank()].back()); });
    show("error", errors[0]);
    check("the error names rank 1", errors[0].find("rank 1 has") != std::string::npos);
}
