// Lesson 23: two norms, which accumulation computes anyway, measure the noise and the useful size of a batch.
#include "course/kit/pictures.hpp"
#include "course/kit/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct WhatTheNoiseSays {
    const int scale = setting("items"), n = setting("micro");  // noise scale; micro-batches of an update
    const int b = scale / 10;
    const double G2 = double(d) / scale;  // |G|^2 at the beginning

    void talk() {
        step("Items x around 0. The loss of one: |w - x|^2 / 2; its gradient: w - x.");
        note(say("Each has {} numbers of variance 1; the variances' sum is tr(Sigma), the noise.", d));
        note("The gradient over all items is the truth, G = w.");
        show("tr(Sigma)", double(d));
        show("|G|^2", G2);
        show("|g|^2 of one item", squared(mean_gradient(1, 0)));
        note("The gradient of one item is nearly all noise. In training nobody sees G.");

        predict(
            say("A mean over b items has the expected square |G|^2 + tr(Sigma)/b. Of {} items it is", b),
            {right(G2 + d / double(b)).within(0.01 * G2),
             wrong(G2, "That is G alone. Its noise is divided by b, and not gone."),
             wrong(d / double(b), "That is the noise alone. What is it the noise of?"),
             wrong((G2 + d) / b, "Only the noise is divided: a mean of equal things is as long as they.")},
            hint("Which of the two terms does a mean make smaller?",
                 say("Write {} and {} / {} under each other.", G2, d, b)),
            say("{} and {} are added.", G2, d / double(b)));
        auto sizes = table({"items", "mean |g|^2 of 100", "expected"});
        for (const int size : {1, b, scale, 10 * scale})
            sizes.row(size, mean_square(size), G2 + d / double(size));
        note(say("At {} items the two are equal: this is the noise scale, tr(Sigma)/|G|^2.", scale));
        check_squares(sizes);

        const double first = G2 + d / double(b), whole = G2 + d / double(n * b);
        predict(say("Of {} items |g|^2 is {}, of {} it is {}. Solve the two for tr(Sigma):", b, first, n * b,
                    whole),
                {right(d).within(1),
                 wrong(first - whole, "That is tr(Sigma) times a difference: of which two numbers?"),
                 wrong(first * b, "That is |G|^2 as well, times b. Which equation is without it?"),
                 wrong((first - whole) * b, say("Divided by 1/{} alone, as if {} had no noise.", b, n * b))},
                hint("What do two equations with the same |G|^2 leave when they are subtracted?",
                     say("Divide {} by 1/{} - 1/{}.", first - whole, b, n * b)),
                "The difference of the squares over the difference of the 1/b.");
        show("tr(Sigma)", (first - whole) / (1.0 / b - 1.0 / (n * b)));
        show("|G|^2", whole - (first - whole) / (1.0 / b - 1.0 / (n * b)) / (n * b));

        step(say("A window of {} x {} has both norms: of its first gradient, and of all.", n, b));
        code(3);
        Window<real> window(sgd, {.noise = true});
        for (int micro = 0; micro < n; ++micro) window.add(loss(b, micro));
        const auto one = window.finish().noise;
        show("tr(Sigma), one window", one.trace());
        show("|G|^2, one window", one.square());
        const auto many_windows = after(100, n * b).sum;
        show("tr(Sigma), mean of 100", many_windows.trace());
        show("|G|^2, mean of 100", many_windows.square());
        note("No bias in either; but a single window says little about |G|^2.");
        check_by_hand(one);

        predict(say("Windows of {} items, {} times fewer than the noise scale. How many say |G|^2 < 0?",
                    scale / 25, 25),
                {right("about one in three"),
                 wrong("none: it is a square", "What is estimated is one. The estimate is a difference."),
                 wrong("nearly all of them", "Then it would be biased: it is right on average.")},
                hint("Is |G|^2 computed by squaring something, or by subtracting?",
                     say("It is {} less an estimate of {}.", G2 + d * 25.0 / scale, d * 25.0 / scale)),
                "Two large numbers are subtracted, and their own noise is left.");
        auto windows = table({"items", "tr(Sigma) off", "|G|^2 off", "|G|^2 spread", "below 0"});
        for (const int size : {scale / 25, scale / 5, 2 * scale}) {
            const Run run = after(100, size);
            windows.row(size, run.sum.trace() / d - 1, run.sum.square() / G2 - 1, spread_of_square(size) / 10,
                        run.below_0);
        }
        note("Off: a mean of 100, relative. Spread: by how much |G|^2 may well be off.");
        note("Small windows tell tr(Sigma) well, |G|^2 badly; large ones tell both.");
        const Run small = after(100, scale / 25);
        const std::vector<Plane::Points> estimates{{"|G|^2", small.tens, small.square},
                                                   {"tr(Sigma)", small.tens, small.trace}};
        graph("what-the-noise-says", say("100 windows of {} items", scale / 25),
              Plane{"windows, by tens", "estimate, in parts of the truth", estimates, "the truth", 0, 1, {}});
        check_windows(windows);

        predict(
            "The noise scale is trace / square. From 100 windows: which of these?",
            {right("sum both, divide the sums"),
             wrong("divide, and take the mean", "A window whose square is nearly 0 says anything at all."),
             wrong("divide, leave out what is below 0", "Then the squares left are too large."),
             wrong("take the last window's ratio", "One window says little about |G|^2.")},
            hint("What does one window with a square near 0 do to a mean of ratios?",
                 "Look at the largest ratio of a single window below."),
            "Sums have no bias, and their quotient settles on the truth; a mean of ratios need not.");
        auto ratios = table({"items", "ratio of means", "mean of ratios", "largest |ratio|", "truth"});
        for (const int size : {scale / 25, scale / 5, 2 * scale}) {
            const Run run = after(100, size);
            ratios.row(size, run.sum.traces / run.sum.squares, run.ratios / 100, run.largest, scale);
        }
        check_ratios(ratios);

        const Course all = course(0), few = course(critical() / 8);
        // S_min: updates without noise; E_min: items in the limit of small batches
        const double S_min = all.updates, E_min = few.items - S_min * critical() / 8;
        predict(
            say("Descent to a quarter of the loss; the noise scale is {} on the way. With batches of {}, how "
                "many times the fewest items does it take?",
                std::round(critical()), std::round(critical())),
            {right(2).within(0.2), wrong(1, "As many as tiny batches? Noise is not yet small here."),
             wrong(4, "The loss falls to a quarter with any batch. The items are asked for."),
             wrong(std::round(critical()), "The updates are fewer than with one item, by half of that.")},
            hint("If noise and gradient are alike, how much of an update is gained?",
                 say("One item alone gains 1 / (1 + {}) of an update without noise, {} together 1 / (1 + 1).",
                     std::round(critical()), std::round(critical()))),
            "Half of each update is lost to noise: twice the updates, and twice the items.");
        auto batches = table({"items", "updates S", "S / S_min", "items E", "E / E_min", "product"});
        for (const double part : {0.25, 0.5, 1.0, 2.0, 4.0}) {
            const Course run = course(part * critical());
            const double S = run.updates / S_min, E = run.items / E_min;
            batches.row(int(std::round(part * critical())), int(std::round(run.updates)), S,
                        int(std::round(run.items)), E, (S - 1) * (E - 1));
        }
        note(
            "S_min, E_min: the fewest. product: (S/S_min - 1)(E/E_min - 1). Fewer of one is more of the "
            "other.");
        check_law(batches);

        predict(
            "One device takes item after item; 64 others one each, but each update costs them the time of 8 "
            "items. "
            "Who saves time by accumulating?",
            {right("the 64 devices"), wrong("both", "Alone it waits for nobody: its time is its items."),
             wrong("the one device", "What does an update cost there, beside its items?"),
             wrong("neither", "Who makes fewer updates waits less often.")},
            hint("What is the time of one device: updates, or items?",
                 "One: E. Many: S (N + 8), N micro-batches each. With N, E rises and S falls."),
            "One device pays for items, which accumulating wastes; many pay for updates as well.");
        auto times = table({"micro-batches", "one device", "64 devices"});
        for (const int micro : {1, 2, 4, 8, 16})
            times.row(micro, int(std::round(E_min + S_min * micro)),
                      int(std::round((S_min + E_min / (64 * micro)) * (micro + 8))));
        note("Time, in items. Alone, small batches pay, if the optimizer bears them.");
        check_times(times);

        const double beta2 = 0.95, half = std::log(0.5) / std::log(beta2);
        predict(say("Adam with beta2 = 0.95 and {} items an update forgets half in {} updates. For the same "
                    "half-life in items, batches of 1 need beta2 =",
                    64, std::round(half * 10) / 10),
                {right(std::pow(beta2, 1.0 / 64)).within(0.0002),
                 wrong(beta2, say("Then half is forgotten after {} items.", std::round(half))),
                 wrong(std::pow(beta2, 64), "The other way round: it is to forget more slowly."),
                 wrong(beta2 / 64, "A factor that acts 64 times as often: no quotient, a root.")},
                hint("64 updates of one item must forget as much as one of 64. What is x^64?",
                     "Take the 64th root of 0.95."),
                "Each of 64 small updates forgets an equal factor of what the large one does.");
        auto memory = table({"items", "beta2", "half-life, updates", "half-life, items"});
        for (const int size : {64, 16, 4, 1}) {
            const double beta = std::pow(beta2, size / 64.0);
            const double updates = std::log(0.5) / std::log(beta);
            memory.row(size, say("{}", std::round(beta * 1e5) / 1e5), updates, updates * size);
        }
        show("beta2 for 1", std::pow(beta2, 1.0 / 64));
        note("So language models train with batches down to 1 (Marek et al. 2025).");
        check_memory(memory);
    }

    // ---- tools: items, windows, descents ------------------------------------------------------------------

    static constexpr int d = 1000;  // numbers of an item

    // Draws the mean of `items` random items. An item has variance 1, so the mean has variance 1 / items.
    static Tensor mean_of_items(double items, int draw) {
        const auto stream = static_cast<std::uint64_t>(draw) << 32 | static_cast<std::uint64_t>(items * 8);
        return Tensor(randn<real>({d}, 0, 1 / std::sqrt(items), {.seed = options().seed, .stream = stream})
                          .value()
                          .to(options().device));
    }
    // Returns the sum of the items' losses, up to a constant, and the number of items.
    Loss<Array<real>> loss(double items, int draw) const {
        return {sum(pow(w - mean_of_items(items, draw), 2)) * (items / 2),
                Tensor(Array<real>({}, {real(items)}).to(options().device))};
    }
    Tensor w = parameter(Array<real>::full({d}, real(1 / std::sqrt(scale)), options().device));
    Sgd<real> sgd{{w}, {.learning_rate = 0}};  // for windows that only measure

    std::vector<real> mean_gradient(double items, int draw) const {
        return grad((loss(items, draw).mean()), {w}).front().to_vector();
    }
    static double squared(const std::vector<real>& g) {
        double sum = 0;
        for (const real each : g) sum += double(each) * double(each);
        return sum;
    }
    double mean_square(int items) const {
        double sum = 0;
        for (int draw = 0; draw < 100; ++draw) sum += squared(mean_gradient(items, draw));
        return sum / 100;
    }

    struct Run {
        Window<real>::Noise sum;
        std::vector<double> tens, trace,
            square;  // number of updates / 10; estimates of each update, relative to the truth
        int below_0 = 0;
        double ratios = 0, largest = 0;
    };
    // Measures the noise in updates of `items` items.
    Run after(int windows, int items) {
        Window<real> window(sgd, {.noise = true});
        Run run;
        for (int draw = 0; draw < windows; ++draw) {
            for (int micro = 0; micro < n; ++micro) window.add(loss(double(items) / n, n * draw + micro));
            const auto one = window.finish().noise;
            const double ratio = one.trace() / one.square();
            run.tens.push_back((draw + 1) / 10.0);
            run.trace.push_back(one.trace() / d), run.square.push_back(one.square() / G2);
            run.below_0 += one.square() < 0;
            run.ratios += ratio;
            run.largest = std::max(run.largest, std::abs(ratio));
        }
        run.sum = window.noise();
        return run;
    }

    // Returns the mean noise scale while the loss |G|^2 / 2 falls to a quarter (docs/mathematics.md, 8.2).
    double critical() const { return scale * 3 / std::log(4.0); }
    struct Course {
        double updates, items;
    };
    // Trains with a hundredth of the best learning rate. If `items` is 0, gradients have no noise.
    Course course(double items) const {
        const Tensor at = parameter(w.value().clone());
        Sgd<real> descent({at}, {.learning_rate = 0});
        double left = G2, before = G2;
        int updates = 0;
        for (; left > G2 / 4; ++updates) {
            const double noise = items > 0 ? d / left / items : 0;
            descent.set_learning_rate(0.01 / (1 + noise));
            at.zero_grad();
            const Tensor middle = items > 0 ? mean_of_items(items, 1000 + updates)
                                            : Tensor(Array<real>::zeros({d}, options().device));
            (sum(pow(at - middle, 2)) / 2).backward();
            descent.step();
            before = left;
            left = squared(at.value().to_vector());
        }
        // subtracts the unused part of the last update
        const double part = updates - (G2 / 4 - left) / (before - left);
        return {part, part * items};
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // Returns the relative standard deviation of one update's estimate, (8.5) in docs/mathematics.md.
    double spread_of_trace(double items) const {
        return std::sqrt((2 * (n + 1) + 4 * items / scale) / ((n - 1.0) * d));
    }
    double spread_of_square(double items) const {
        const double r = scale / items;
        return std::sqrt(4 * n * (r * r + r) / ((n - 1.0) * d));
    }

    // |g|^2 has the variance 2 d / b^2 + 4 |G|^2 / b. The bound of the error is five standard deviations.
    void check_squares(const Table& sizes) const {
        std::vector<double> bound;
        for (const double items : values(sizes.column("items")))
            bound.push_back(5 * std::sqrt((2 * d / items + 4 * G2) / items / 100));
        check_close("the expected squares", sizes.column("mean |g|^2 of 100"), sizes.column("expected"),
                    bound);
    }

    // Computes the estimates of an update directly from the gradients of its micro-batches.
    void check_by_hand(const Window<real>::Noise& one) const {
        std::vector<real> whole(d);
        for (int micro = 0; micro < n; ++micro) {
            const auto g = mean_gradient(b, micro);
            for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += g[i] / real(n);
        }
        const double first = squared(mean_gradient(b, 0)), all = squared(whole), q = 1.0 / (n * b);
        const double trace = (first - all) / (1.0 / b - q);
        check_close("by hand", {one.trace(), one.square()}, {trace, all - q * trace},
                    roundings(16 * n) * first * n * b);
    }

    // The bound is five standard deviations of the mean of 100 estimates.
    void check_windows(const Table& windows) const {
        const auto sizes = values(windows.column("items"));
        std::vector<double> trace, square;
        for (const double items : sizes) {
            trace.push_back(0.5 * spread_of_trace(items));
            square.push_back(0.5 * spread_of_square(items));
        }
        check_close("tr(Sigma)", windows.column("tr(Sigma) off"), {0.0, 0.0, 0.0}, trace);
        check_close("|G|^2", windows.column("|G|^2 off"), {0.0, 0.0, 0.0}, square);
        const double below =
            // 29 to 33 of 100 are expected; the check allows five fewer or five more
            values(windows.column("below 0"))[0];
        check("about a third are below 0", below > 8 && below < 57);
    }

    void check_ratios(const Table& ratios) const {
        const auto found = values(ratios.column("ratio of means"));
        for (const int row : {1, 2}) {
            const double items = row == 1 ? scale / 5.0 : 2.0 * scale;
            check_close(say("the scale from windows of {}", items), found[std::size_t(row)], double(scale),
                        0.6 * (spread_of_trace(items) + spread_of_square(items)) * scale);
        }
        check("one small window is far off", values(ratios.column("largest |ratio|"))[0] > 2 * scale);
    }

    void check_law(const Table& batches) const {
        // In 240 training runs with other random numbers, the error was at most 0.08.
        check_close("the law", batches.column("product"), {1.0, 1.0, 1.0, 1.0, 1.0}, 0.2);
        check_close("twice and twice",
                    {values(batches.column("S / S_min"))[2], values(batches.column("E / E_min"))[2]},
                    {2.0, 2.0}, 0.2);
    }

    static void check_times(const Table& times) {
        const auto one = values(times.column("one device")), many = values(times.column("64 devices"));
        check("one device: least without accumulating", std::ranges::min_element(one) == one.begin());
        check("64 devices: least with it", std::ranges::min_element(many) != many.begin());
    }

    static void check_memory(const Table& memory) {
        const auto items = values(memory.column("half-life, items"));
        check_close("the same half-life", items, std::vector<double>(4, items[0]), 1e-9 * items[0]);
        double v = 1;
        for (int update = 0; update < int(items[0]); ++update) v *= std::pow(0.95, 1.0 / 64);
        check_close("what is left after it, item by item", v, 0.5, 0.001);
    }
};

const RegisterLesson<WhatTheNoiseSays> lesson(
    {.number = 23,
     .slug = "what-the-noise-says",
     .title = "what the noise says",
     .minutes = 25,
     .steps = 9,
     .parameters = {one_of("items", "items of the noise scale", 100, {100, 200, 400}),
                    one_of("micro", "micro-batches of a window", 2, {2, 4})}});

}  // namespace
