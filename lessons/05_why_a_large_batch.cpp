// Lesson 5: the gradient of b items is an estimate with variance sigma^2 / b.
#include "course/kit/toy.hpp"

static constexpr int draws = 2000;  // batches of each size
static constexpr double sigma = 2;  // standard deviation of the items along each axis

// Draws items in the plane around (1, 2). Each pair of size and draw has its own random numbers.
static Tensor items(int size, int draw) {
    const auto stream = static_cast<std::uint64_t>(size) << 32 | static_cast<std::uint64_t>(draw);
    const Tensor around_0 = randn<real>({size, 2}, 0, sigma, {.seed = options().seed, .stream = stream});
    const Tensor middle = Array<real>({2}, {1, 2}, options().device);
    return around_0.value().to(options().device) + middle;
}

// Returns the mean squared distance from the true gradient (2, -3) along one axis.
static double variance_of(const std::vector<std::vector<real>>& gradients) {
    double squares = 0;
    for (const auto& g : gradients) squares += std::pow(double(g[0]) - 2, 2) + std::pow(double(g[1]) + 3, 2);
    return squares / (2.0 * double(gradients.size()));
}

LESSON(one_of("items", "items of the large batch", 64, {32, 64, 128, 256}), learning_rate(0.1, 0.03, 0.9)) {
    const int b = setting("items");
    const double rate = setting("rate");
    const int micro = b / 4, few = b / 16;
    const Tensor w = parameter(Array<real>({2}, {3, -1}, options().device));

    step("The items x are points in the plane, around (1, 2). Their variance along each axis is 4.");
    note("An item has the loss |w - x|^2 / 2, and the gradient w - x.");
    note("The mean gradient of all possible items is called the true gradient: w - (1, 2) = (2, -3).");
    code(2);
    const auto loss_of = [&](const Tensor& batch) {  // mean over the items
        return mean(sum(pow(w - batch, 2), {1})) / 2;
    };
    const auto estimate = [&](const Tensor& batch) { return grad(loss_of(batch), {w})[0].to_vector(); };
    show("w", w);
    auto some = table({"items", "gradient"});
    for (const int size : {1, few, micro, b}) some.row(size, estimate(items(size, 0)));
    note("We cannot take all possible items. The gradient of a batch is an estimate of the true gradient.");

    step("Here are the gradients of sixty batches of one item, and of sixty batches of {} items.", micro);
    Plane plane{"first component of the gradient",
                "second component",
                {},
                Plane::Scale::equal,
                "the true gradient",
                2,
                -3};
    for (const int size : {1, micro}) {
        plane.series.push_back({say("items in a batch: {}", size), {}, {}});
        for (int draw = 0; draw < 60; ++draw) {
            const std::vector<real> g = estimate(items(size, draw));
            plane.series.back().x.push_back(double(g[0]));
            plane.series.back().y.push_back(double(g[1]));
        }
        const double spread = sigma / std::sqrt(size);
        plane.circles.push_back({say("spread {} = 2 / root({})", short_number(spread), size), spread});
    }
    std::vector<Series> cloud;
    for (const Plane::Series& p : plane.series) cloud.push_back({p.label, p.x, p.y});
    cloud.push_back({"the true gradient", {2}, {-3}});
    plot("gradients, first component across, second up", cloud);
    graph("cloud", say("Sixty gradients of one item, and sixty of {}, around the true one", micro), plane);

    ask("half-the-spread");
    note("For each batch size, we measure the variance of the gradients of 2000 batches.");
    auto noise = table({"items", "measured variance", "4 / items", "ratio", "spread"});
    for (const int size : {1, few, micro, b}) {
        std::vector<std::vector<real>> gradients;
        for (int draw = 0; draw < draws; ++draw) gradients.push_back(estimate(items(size, draw)));
        const double variance = variance_of(gradients), expected = sigma * sigma / size;
        noise.row(size, variance, expected, variance / expected, std::sqrt(variance));
    }
    // Each variance is a mean of 4000 squares. The bound is five standard deviations, sqrt(2 / 4000) each.
    const double allowed = 5 * std::sqrt(2.0 / (2 * draws));
    check_close("all ratios are near 1", noise.column("ratio"), {1.0, 1.0, 1.0, 1.0}, allowed);

    step("We split a batch of {} items into four parts of {} items, and add their gradients.", b, micro);
    code(3);
    const auto accumulated = [&](const Tensor& batch) {
        w.zero_grad();
        for (const Tensor& part : split(batch, micro)) (loss_of(part) / 4).backward();
        return w.grad().to_vector();
    };
    const Tensor batch = items(b, 0);
    const std::vector<real> at_once = estimate(batch), in_four = accumulated(batch);
    show("the large batch at once", at_once, "four micro-batches, accumulated", in_four);
    // Each gradient is a mean of b numbers below 16 in magnitude, with at most b + 6 roundings.
    check_close("both gradients are equal", in_four, at_once, 2 * roundings(b + 6) * 16);
    std::vector<std::vector<real>> fresh;
    for (int draw = 0; draw < draws; ++draw) fresh.push_back(accumulated(items(b, draws + draw)));
    show("accumulated: variance of 2000 new batches", variance_of(fresh));
    check_close("the variance divided by 4 / items is near 1", variance_of(fresh) * b / 4, 1.0, allowed);

    step("Now suppose that each micro-batch makes its own update. Take the loss v^2 / 2 of one number v.");
    note("The minimum is at v = 0. We begin at v = 1, with a learning rate of {}.", rate);
    const Scalar v = parameter(1.0);
    code(2);
    (pow(v, 2) / 2).backward();
    sgd_step({v}, rate);
    show("v after one update", v);
    const double one = 1 - rate, four = std::pow(one, 4);

    ask("four-updates", "b", b, "micro", micro, "one", short_number(one), "four", short_number(four),
        "linear", short_number(1 - 4 * rate), "quarter", short_number(one / 4), "gone",
        short_number(1 - four));
    auto left = table({"updates", "v"});
    left.row(1, v);
    for (int update = 2; update <= 4; ++update) {
        v.zero_grad();
        (pow(v, 2) / 2).backward();
        sgd_step({v}, rate);
        left.row(update, v);
    }
    check_close("four updates", v, four, roundings(12));  // 3 in each update
    note("A larger batch means fewer updates. You must tune the learning rate or the number of epochs.");
}
