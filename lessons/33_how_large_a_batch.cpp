// Lesson 33: a larger batch needs fewer updates and more items, and another learning rate.
#include "noisy_items.hpp"

// Stores the gradient of a batch in w.grad. With 0 items, the gradient has no noise.
static void backward(const Tensor& w, double items, int draw) {
    const Tensor mean = items > 0 ? mean_of_items(items, draw) : zeros({numbers_of_item});
    w.zero_grad();
    (sum(pow(w - mean, 2)) / 2).backward();
}
static double best_rate(double noise_scale, double items) {
    return items > 0 ? 1 / (1 + noise_scale / items) : 1;
}

// Returns the loss after one step, divided by the loss before: the mean of 100 steps.
static double loss_left(int scale, int items, double rate) {
    double sum = 0;
    for (int draw = 0; draw < 100; ++draw) {
        const Tensor w = weights_for(scale);
        const double before = square_of(w);
        backward(w, items, draw);
        sgd_step({w}, rate);
        sum += square_of(w) / before;
    }
    return sum / 100;
}

// Trains with a hundredth of the best rate until the loss is a quarter. Returns the number of updates.
static double updates_until_a_quarter(int scale, double items) {
    const Tensor w = weights_for(scale);
    const double goal = square_of(w) / 4;
    double now = square_of(w), before = now;
    int updates = 0;
    for (; now > goal; ++updates) {
        backward(w, items, 1000 + updates);
        sgd_step({w}, 0.01 * best_rate(numbers_of_item / now, items));
        before = now, now = square_of(w);
    }
    return updates - (goal - now) / (before - now);  // without the unused part of the last update
}

LESSON(one_of("items", "items of the noise scale", 100, {100, 200, 400})) {
    const int scale = setting("items");

    step("An item has 1000 random numbers around 0, and the model has 1000 weights w.");
    note("Up to a constant, the mean loss of all items is |w|^2 / 2. The gradient of this loss is w.");
    note("With R = {} items, noise and gradient are equal. We take {} items and the rate 0.1.", scale, scale);
    note("A step of b items with rate e multiplies the loss by (1 - e)^2 + e^2 R/b. Noise causes e^2 R/b.");
    const Tensor w = weights_for(scale);
    const double before = square_of(w);
    code(2);
    backward(w, scale, 0);
    sgd_step({w}, 0.1);
    show("loss left, and expected", {square_of(w) / before, 0.9 * 0.9 + 0.1 * 0.1});

    ask("best-rate", "R", scale);
    auto rates = table({"rate", "loss left, mean of 100", "expected"});
    for (const double rate : {0.25, 0.5, 0.75, 1.0}) {
        const double left = (1 - rate) * (1 - rate), added = rate * rate;
        rates.row(rate, loss_left(scale, scale, rate), left + added);
    }
    // The variance of one loss is at most 0.002, so five standard deviations of a mean are 0.023.
    check_close("expected losses", rates.column("loss left, mean of 100"), rates.column("expected"), 0.023);

    step("If noise equals gradient in a batch of R items, the best rate for b items is 1 / (1 + R/b).");
    auto sizes = table({"items", "best rate", "loss left", "1 / (1 + b/R)", "loss left with rate 0.5"});
    for (const int items : {scale / 4, scale, 4 * scale}) {
        const double best = best_rate(scale, items), expected = 1 / (1 + double(items) / scale);
        sizes.row(items, best, loss_left(scale, items, best), expected, loss_left(scale, items, 0.5));
    }
    check_close("the best losses", sizes.column("loss left"), sizes.column("1 / (1 + b/R)"), 0.023);
    note("With the rate 0.5, a step with a batch of R/4 items increases the loss.");

    const double R = scale * 3 / std::log(4.0);  // the mean while the noise scale grows to 4 times `scale`
    step("We train until the loss is a quarter. R = 1000 / |w|^2, the noise scale, grows to {}.", 4 * scale);
    note("The mean of R is {}. Each step uses a hundredth of its best learning rate.", std::lround(R));
    const double S_min = updates_until_a_quarter(scale, 0);  // without noise
    // A batch of b items needs E_min + S_min b items.
    const double E_min = (updates_until_a_quarter(scale, R / 8) - S_min) * R / 8;
    show("S_min, updates without noise", S_min, "E_min, items of tiny batches", E_min);

    ask("twice-the-items", "R", std::lround(R));
    auto batches = table({"items", "updates S", "S / S_min", "items E", "E / E_min", "product"});
    for (const double part : {0.25, 0.5, 1.0, 2.0, 4.0}) {
        const double b = part * R, updates = updates_until_a_quarter(scale, b), items = updates * b;
        const double S = updates / S_min, E = items / E_min;
        batches.row(std::lround(b), std::lround(updates), S, std::lround(items), E, (S - 1) * (E - 1));
    }
    const std::vector<double> S = batches.column("S / S_min").values, E = batches.column("E / E_min").values;
    graph("updates-and-items", "Batches of R/4 to 4 R: fewer updates, more items",
          curves("batch, doubled each time", "times the fewest", {{"updates", S}, {"items", E}}));
    // In 240 trainings with other random numbers, the product differed from 1 by at most 0.08.
    check_close("(S/S_min - 1)(E/E_min - 1) is 1", batches.column("product"), std::vector<double>(5, 1), 0.2);

    ask("time");
    auto times = table({"micro-batches", "one device", "64 devices"});
    for (const int n : {1, 2, 4, 8, 16}) {
        const double alone = E_min + S_min * n, updates = S_min + E_min / (64 * n);
        times.row(n, std::lround(alone), std::lround(updates * (n + 8)));
    }
    note("The times are in units: a device computes one item in one unit of time.");
    const std::vector<double> one = times.column("one device").values,
                              many = times.column("64 devices").values;
    check("one device is fastest without accumulation", std::ranges::min_element(one) == one.begin());
    check("64 devices are fastest with accumulation", std::ranges::min_element(many) != many.begin());

    ask("beta2-of-one-item");
    auto memory = table({"items", "beta2", "half-life, updates", "half-life, items"});
    for (const int items : {64, 16, 4, 1}) {
        const double beta2 = std::pow(0.95, items / 64.0), updates = std::log(0.5) / std::log(beta2);
        memory.row(items, beta2, updates, updates * items);
    }
    double left = 1;
    code(1);
    for (int k = 0; k < 865; ++k) left *= std::pow(0.95, 1.0 / 64);
    check_close("half is left after 865 updates of one item", left, 0.5, 0.001);
    note("Language models also train with one item per batch (Marek et al. 2025).");
}
