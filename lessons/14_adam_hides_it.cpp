// Lesson 14: Adam's step does not depend on the size of a gradient, which hides a forgotten division.
#include <limits>

#include "adam_a.hpp"
#include "course/kit/pictures.hpp"
#include "course/kit/toy.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct AdamHidesIt {
    const int n = setting("micro");  // micro-batches of the toy; if n is 6, SGD by sums exceeds float32

    void talk() {
        step(say("The toy in {} micro-batches, divided or forgotten; one step of SGD.", to_text(n)));
        constexpr double sgd_rate = 0.2;
        speaks = true;
        const auto sgd = moved<Sgd<real>>(Reduction::mean, Sgd<real>::Options{.learning_rate = sgd_rate});
        const auto sgd_sum = moved<Sgd<real>>(Reduction::sum, Sgd<real>::Options{.learning_rate = sgd_rate});
        auto loud = table({"SGD, rate 0.2", "w moved by"});
        loud.row(say("mean of {}", n), sgd);
        loud.row(say("sum of {}", n), sgd_sum);
        check_sgd(sgd, sgd_sum);

        predict("The same mistake under Adam. Its step is",
                {right("nearly the same"),
                 wrong(say("{} times as long", n),
                       "So it was with SGD. Adam divides by something that has grown, too."),
                 wrong(say("{} times as long", n * n),
                       say("The squares are {} times as large. Their root is taken.", n * n)),
                 wrong(say("1/{} as long", n),
                       say("What it divides by has grown {} times; and what is divided?", n))},
                hint(say("If g is {} times as large, what becomes of m, and of the root of v?", n),
                     say("Adam's step is m / root(v): put {} g in both.", n)),
                "Adam divides a mean of gradients by the root of a mean of their squares.");
        const auto adam = moved<Adam<real>>(Reduction::mean, Adam<real>::Options{.learning_rate = rate});
        const auto adam_sum = moved<Adam<real>>(Reduction::sum, Adam<real>::Options{.learning_rate = rate});
        auto silent = table({"Adam, rate 0.1", "w moved by"});
        silent.row(say("mean of {}", n), adam);
        silent.row(say("sum of {}", n), adam_sum);
        check_close("Adam: the same", adam_sum, adam, 1e-6);
        check_close("the rate, signed", adam, {rate, -rate, rate}, 1e-6);
        note(say("{}g / root({} g g) is g / root(g g).", n, n * n));

        step("Fifty updates: w is to find (1, 1, 1) by least squares. The loss at the end:");
        auto fitted = table({"", say("mean of {}", n), say("sum of {}", n)});
        const auto sgd_losses =
            losses_of_50<Sgd<real>>(Reduction::mean, Sgd<real>::Options{.learning_rate = 0.3});
        const auto sgd_sum_losses =
            losses_of_50<Sgd<real>>(Reduction::sum, Sgd<real>::Options{.learning_rate = 0.3});
        const auto adam_losses =
            losses_of_50<Adam<real>>(Reduction::mean, Adam<real>::Options{.learning_rate = rate});
        const auto adam_sum_losses =
            losses_of_50<Adam<real>>(Reduction::sum, Adam<real>::Options{.learning_rate = rate});
        const double sgd_loss = sgd_losses.back(), sgd_sum_loss = sgd_sum_losses.back(),
                     adam_loss = adam_losses.back(), adam_sum_loss = adam_sum_losses.back();
        fitted.row("SGD, rate 0.3", sgd_loss, in_powers_of_ten(sgd_sum_loss));
        fitted.row("Adam, rate 0.1", adam_loss, adam_sum_loss);
        check_fits(sgd_loss, sgd_sum_loss, adam_loss, adam_sum_loss);
        graph("losses",
              say("The loss over fifty updates: SGD {}, Adam hides it",
                  sgd_sum_loss > sgd_losses.front() ? "explodes" : "bears it this time"),
              Curves{"updates",
                     "loss, by powers of ten",
                     {{say("SGD, mean of {}", n), sgd_losses},
                      {say("SGD, sum of {}", n), sgd_sum_losses},
                      {say("Adam, mean of {}", n), adam_losses},
                      {say("Adam, sum of {}", n), adam_sum_losses}}});

        step("Where does it show? Adam's first step, for one gradient g:");
        speaks = true;
        first_step(1e-8, 1e-8);

        predict(
            "It is |g| / (|g| + eps) of the rate. With eps and g of 1e-8 that is 0.5; with 4g:",
            {right(0.8).within(0.005),
             wrong(0.5, "So it would be if eps were far below g. Here it is as large."),
             wrong(2, "Not 4 times as much: 4g stands below the line as well."),
             wrong(1, "Only where eps is nothing beside g."), wrong(0.2, "That is what is missing to 1.")},
            hint("Where does g stand in the formula?", "Above the line 4; below it 4 and an eps."),
            "4/(4+1), against 1/(1+1).");
        auto small = table({"g", "step / rate", "formula", "with 4g", "formula"});
        std::vector<double> steps, formula;
        for (const double g : {1.0, 1e-4, 1e-6, 1e-8, 1e-9}) {
            for (const double slope : {g, 4 * g}) {
                steps.push_back(first_step(slope, 1e-8));
                formula.push_back(slope / (slope + 1e-8));
            }
            const std::size_t end = steps.size();
            small.row(in_powers_of_ten(g), steps[end - 2], formula[end - 2], steps[end - 1],
                      formula[end - 1]);
        }
        check_steps(steps, formula);

        step("Not hidden: the norm in your log, and decay that is added to the gradient.");
        auto seen = table({"", "norm on the toy", "w, from 1: g = -0.3, decay 0.5"});
        for (const int divisor : {n, 1}) {
            auto w = Toy::weights(), one = number(1);  // decay adds 0.5 w = 0.5 to the gradient
            Adam adam_l2({one}, {.learning_rate = rate, .weight_decay = 0.5});
            for (const auto& micro : split(Toy::six_rows(), 6 / n)) {
                (mean(matmul(micro, w)) / divisor).backward();
                (one * (-0.3) / divisor).backward();
            }
            adam_l2.step();
            seen.row(say("{} of {}", divisor == n ? "mean" : "sum", n),
                     clip_grad_norm<real>({w}, std::numeric_limits<double>::infinity()), double(one.item()));
        }
        check_norms(seen);
        note(say("So clipping bites too early, and decay weighs {} of what you set.",
                 n == 2 ? "half" : "a third"));

        step("AdamA keeps no gradients: each micro-batch's, and its square, is folded in at once.");
        auto w = number(0), folded = number(0);
        Adam sums({w}, {.learning_rate = rate});
        AdamA squares({folded}, {.learning_rate = rate});
        code(3);
        for (const double g : {0.5, -0.5}) {
            (w * g).backward();
            (folded * g).backward(), squares.fold();
        }
        sums.step(), squares.step();

        predict("After +1/2 and -1/2 Adam squares their sum: its v is 0. AdamA's is",
                {right(0.5), wrong(0, "That is Adam's: the square of the sum."),
                 wrong(0.25, "That is one of the two squares."),
                 wrong(1, "Squares are added, not sizes: (1/2)^2 is 1/4.")},
                hint("What is added up: gradients, or their squares?", "(1/2)^2 and (-1/2)^2."),
                "Adam squares the sum, AdamA sums the squares.");
        // The optimizer's state contains v times (1 - beta2), but the table shows v.
        const double of_adam = saved(sums, "v")[0] / (1 - 0.999),
                     of_adam_a = saved(squares, "v")[0] / (1 - 0.999);
        auto moments = table({"g = +1/2, -1/2", "v", "step / rate"});
        moments.row("Adam", of_adam, steps_down(w));
        moments.row("AdamA", of_adam_a, steps_down(folded));
        check_close("v: 0 against 0.5", {of_adam, of_adam_a}, {0.0, 0.5}, roundings(8));

        step("And where four micro-batches agree, each 1/4 of the mean: Adam and AdamA again.");
        auto mean_w = number(0), folded_w = number(0);
        Adam on_mean({mean_w}, {.learning_rate = rate});
        AdamA on_each({folded_w}, {.learning_rate = rate});
        for (int micro = 0; micro < 4; ++micro) {
            (mean_w / 4).backward();
            (folded_w / 4).backward();
            on_each.fold();
        }
        on_mean.step(), on_each.step();
        const std::vector<double> agree{steps_down(mean_w), steps_down(folded_w)};
        auto agreeing = table({"g = 1/4, four times", "step / rate"});
        agreeing.row("Adam", agree[0]);
        agreeing.row("AdamA", agree[1]);
        check_close("1, 1/root(4/16)", agree, {1, 2}, 1e-6);
        note("AdamA is another optimizer, with a rate of its own; with one micro-batch it is AdamW.");
    }

    static constexpr double rate = 0.1;
    inline static bool speaks = false;  // whether the next run shows its code

    // Runs one update, which averages or sums the gradients of n micro-batches. Returns the change of w.
    template <class Optimizer, class Options>
    std::vector<double> moved(Reduction reduction, Options with) const {
        auto w = Toy::weights();
        const auto before = w.value().to_vector();
        Optimizer optimizer({w}, with);
        Window window(optimizer, {.micro_batches = n, .reduction = reduction, .weigh = Weigh::micro_batches});
        if (std::exchange(speaks, false)) code(2);
        for (const auto& micro : split(Toy::six_rows(), 6 / n)) window.add(Loss(matmul(micro, w)));
        window.finish();
        std::vector<double> move;
        for (std::size_t i = 0; i < 3; ++i)
            move.push_back(double(w.value().to_vector()[i]) - double(before[i]));
        return move;
    }

    // Trains w in 50 updates of n micro-batches. Returns the loss before the first and after each update.
    template <class Optimizer, class Options>
    std::vector<double> losses_of_50(Reduction reduction, Options with) const {
        auto w = Toy::weights();
        const auto ones = constant(Array<real>({3}, {1, 1, 1}, options().device));
        Optimizer optimizer({w}, with);
        Window window(optimizer, {.micro_batches = n, .reduction = reduction, .weigh = Weigh::micro_batches});
        const auto loss = [&] {
            return double(mse(matmul(Toy::six_rows(), w), matmul(Toy::six_rows(), ones)).mean().item());
        };
        std::vector<double> losses{loss()};
        for (int update = 0; update < 50; ++update) {
            for (const auto& micro : split(Toy::six_rows(), 6 / n))
                window.add(mse(matmul(micro, w), matmul(micro, ones)));
            window.finish();
            losses.push_back(loss());
        }
        return losses;
    }

    // Returns how far w is below 0, in units of the learning rate.
    static double steps_down(const Tensor& w) { return (0 - double(w.item())) / rate; }

    // Returns Adam's first step with the gradient g, in units of the learning rate.
    static double first_step(double g, double eps) {
        auto w = number(0);
        if (std::exchange(speaks, false)) code(3);
        Adam adam({w}, {.learning_rate = rate, .eps = eps});
        (w * g).backward();
        adam.step();
        return steps_down(w);
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static Tensor number(double value) {
        return parameter(Array<real>({1}, {static_cast<real>(value)}, options().device));
    }

    static std::string in_powers_of_ten(double x) {
        if (x == 0) return "0";
        char text[16];
        std::snprintf(text, sizeof text, "%.0e", x);
        return text;
    }

    static std::vector<double> saved(const Optimizer<real>& optimizer, const char* what) {
        TrainingState state;
        optimizer.save(state, "optimizer");
        const auto vector = state.get<Array<real>>(std::string("optimizer/") + what + "/0").to_vector();
        return {vector.begin(), vector.end()};
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    static std::vector<double> scaled(double factor, std::vector<double> vector) {
        for (double& component : vector) component *= factor;
        return vector;
    }

    // Each update rounds w once, and |w| is below 2. The roundings of the steps are smaller.
    static constexpr double rounded = 8 * roundings(1);

    void check_fits(double sgd_loss, double sgd_sum_loss, double adam_loss, double adam_sum_loss) const {
        // The loss is quadratic, begins at 2.5 and has a largest curvature of 2.76. Plain descent converges
        // only for rates below 2/2.76 = 0.72. The learning rates 0.3 and 0.6 converge, but 0.9 does not.
        check("SGD arrives, or explodes",
              sgd_loss < 0.01 && (n * 0.3 > 0.72 ? sgd_sum_loss > 1e10 : sgd_sum_loss < 0.01));
        check_close("Adam: one curve", adam_sum_loss, adam_loss, 1e-4);
    }

    static void check_steps(const std::vector<double>& steps, const std::vector<double>& formula) {
        // Computing one step of Adam rounds fewer than 20 times.
        check_close("the formula", steps, formula, roundings(20));
        check_close("0.5 against 0.8", {steps[6], steps[7]}, {0.5, 0.8}, roundings(20));
    }

    void check_norms(const Table& seen) const {
        const double exact = std::sqrt(2.1216 * 2.1216 + 0.1240 * 0.1240 + 3.6750 * 3.6750) / 6;
        // The sum of a column's magnitudes is at most n. Weights of 1/3 cause twice as many roundings.
        check_close(say("{} times the norm", n), seen.column("norm on the toy"), {exact, n * exact},
                    roundings(n > 2 ? 8 : 16) * n);
        check_close("0.9 against 1.1", seen.column("w, from 1: g = -0.3, decay 0.5"), {1 - rate, 1 + rate},
                    1e-6);
    }

    void check_sgd(const std::vector<double>& sgd, const std::vector<double>& sgd_sum) const {
        check_close("exact decimals", sgd, {0.2 * 2.1216 / 6, -0.2 * 0.1240 / 6, 0.2 * 3.6750 / 6}, rounded);
        check_close(say("SGD: {} times as far", n), sgd_sum, scaled(n, sgd), (n + 1) * rounded);
    }
};

const RegisterLesson<AdamHidesIt> lesson(
    {.number = 14,
     .slug = "adam-hides-it",
     .title = "Adam hides it",
     .minutes = 15,
     .steps = 9,
     .parameters = {one_of("micro", "equal micro-batches of the six rows", 3, {2, 3})}});

}  // namespace
