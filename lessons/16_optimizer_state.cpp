// Lesson 16: momentum, Adam's step count, the schedule and the moving average advance once per update.
#include "course/kit/window_gradient.hpp"

static Tensor number(double value) { return parameter(Array<real>({1}, {real(value)}, options().device)); }

// Makes two updates, and returns w. The gradient of each micro-batch is 1, and so is their mean.
static double through_a_window(Optimizer<real>&& optimizer, const Tensor& w, int n) {
    Window<real> window(optimizer, {.micro_batches = n});
    for (int micro = 0; micro < 2 * n; ++micro) {
        window.add(Loss(w * 1.0));
        if (window.full()) window.finish();
    }
    return double(w.item());
}

// Makes two updates of Adam, for a wrapper in which t counts updates and the averages change at each call.
static double adam_with_t_of_updates(int n) {
    double w = 0, m = 0, v = 0;
    for (int call = 1; call <= 2 * n; ++call) {
        const double g = call % n == 0 ? 1 : 0;
        const int t = (call - 1) / n + 1;
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        w -= 0.1 * m / (1 - std::pow(0.9, t)) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
    }
    return w;
}

LESSON(whole_number("micro", "micro-batches of an update", 4, 2, 8)) {
    const int n = setting("micro");
    const Tensor w = number(0), s = number(0), s_once = number(0), a = number(0), a_once = number(0);
    const Sgd<real>::Options with_momentum{.learning_rate = 0.1, .momentum = 0.9};
    Sgd<real> sgd({w}, with_momentum);
    (w * 1.0).backward();
    sgd.step();

    ask("zero-gradient");
    const double before = w.item();
    w.zero_grad();
    sgd.step();
    const double skipped = w.item();
    code(2);
    (w * 0.0).backward();
    sgd.step();
    show("change of w, with a gradient of 0", w.item() - skipped);
    show("change of w, without a gradient", skipped - before);
    check_close("the momentum moves w", w.item() - skipped, -0.09, roundings(12));  // 12 in three steps
    note("step() skips a parameter without a gradient, but not a parameter with a gradient of 0.");

    step("A wrapper calls step() after each of {} micro-batches, but only the last gradient is not 0.", n);
    note("The gradient of each update is 1. SGD with momentum 0.9 trains the weight s, and Adam trains a.");
    Sgd<real> momentum({s}, with_momentum);
    Adam<real> adam({a}, {.learning_rate = 0.1});
    std::vector<double> path{0};
    code(3);
    for (int call = 1; call <= 2 * n; ++call) {
        ((s + a) * (call % n == 0 ? 1.0 : 0.0)).backward();
        momentum.step(), adam.step();
        path.push_back(s.item());
        momentum.zero_grad(), adam.zero_grad();
    }

    // The first gradient moves s in these calls, and the second gradient in the last call.
    const auto formula = [](int calls) { return -0.1 * ((1 - std::pow(0.9, calls)) / 0.1 + 1); };
    ask("momentum", "n", n, "wrong", formula(n + 1), "calls", 2 * n);
    auto sums = table({"momentum 0.9, two updates", "s", "formula"});
    sums.row("once per update", through_a_window(Sgd<real>({s_once}, with_momentum), s_once, n), formula(2));
    sums.row("zeros in between", s.item(), formula(n + 1));
    std::vector<double> once(std::size_t(2 * n), 0);  // after each call
    std::fill(once.begin() + n, once.end(), -0.1);
    once.push_back(formula(2));
    graph("zero-gradients", "The weight s during two updates",
          curves("calls of step()", "s", {{"once per update", once}, {"zeros in between", path}}));
    check_close("the formulas", sums.column("s"), sums.column("formula"), roundings(10 * n));  // 5 in a call

    ask("adams-count", "n", n);
    auto counts = table({"Adam, two updates", "a"});
    counts.row("once per update", through_a_window(Adam<real>({a_once}, {.learning_rate = 0.1}), a_once, n));
    counts.row("zeros in between, t counts calls", a.item());
    counts.row("zeros in between, t counts updates", adam_with_t_of_updates(n));
    check_close("once per update, each step is 0.1", counts.column("a").values[0], -0.2, 1e-6);
    check("neither count is right", std::max(a.item(), real(adam_with_t_of_updates(n))) < -0.206);

    const Schedule tenths = Schedule::step(0.1, 2, 0.1), halving = Schedule::step(0.1, 2, 0.5);
    ask("schedule", "n", n, "power", 2 * n + 1);
    const Tensor p = number(0);
    MovingAverage<real> each_update({p}, {.decay = 0.9}), each_micro_batch({p}, {.decay = 0.9});
    each_update.update(), each_micro_batch.update();
    note("A moving average of a weight (decay 0.9) begins at 0. Then the weight becomes 1, and stays 1.");
    p.modify_value([](Array<real>& value) { value = Array<real>::full({1}, real(1), options().device); });
    for (int micro = 1; micro <= 4 * n; ++micro) {
        each_micro_batch.update();
        if (micro % n == 0) each_update.update();
    }
    auto late = table({"after 4 updates", "learning rate", "moving average of 1"});
    late.row("advanced per update", short_text(tenths.at(4)), each_update.value(0));
    late.row("advanced per micro-batch", short_text(tenths.at(4 * n)), each_micro_batch.value(0));
    check_close("1 - 0.9^4 and 1 - 0.9^(4 N)", late.column("moving average of 1"),
                {1 - std::pow(0.9, 4), 1 - std::pow(0.9, 4 * n)}, roundings(16 * n));  // 4 in each change

    step("The class Window clips w.grad and steps once per update. The table shows w after 4 updates:");
    std::vector<std::vector<double>> all;
    auto trained = table({"micro-batches", "w", "moving average of w"});
    for (const int number_of : {1, 3, 6}) {
        const Tensor v = toy::weights();
        MovingAverage<real> average({v}, {.decay = 0.9});
        Sgd<real> opt({v}, {.momentum = 0.9, .weight_decay = 0.5});
        if (all.empty()) code(1);
        Window<real> window(opt, {.max_norm = 0.5, .schedule = halving, .average = &average});
        for (int update = 0; update < 4; ++update) {
            for (auto& micro : split(toy::rows(), 6 / number_of)) window.add(Loss(matmul(micro, v)));
            window.finish();
        }
        trained.row(number_of, v, average.value(0));
        all.push_back(values(v));
    }
    // Each of the 4 updates rounds fewer than 30 times. The factors 2 and 3.5 bound |w| and the momentum.
    check_close("1 and 6 micro-batches agree", all[2], all[0], 2 * 2 * 3.5 * roundings(120));
}
