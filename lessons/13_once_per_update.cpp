// Lesson 13: clipping, decay, momentum, Adam, schedule and average act once per update, after dividing.
#include "course/kit/pictures.hpp"
#include "course/kit/toy.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct OncePerUpdate {
    const int n = setting("micro");  // micro-batches of an update, except where gradients are clipped
    const double rate = setting("rate");

    void talk() {
        step(
            "Clipping shortens what is longer than a limit. Two micro-batches, [2 0] and [0 2], limit 1, "
            "three ways:");
        const auto two = two_directions();
        speaks = true;
        const Array<real> two_once = once(two, 1), two_running = running(two, 1, false),
                          two_mean = mean_of_clipped(two, 1);
        speaks = false;

        predict("The first: each is divided by 2, added, then clipped. The first component is",
                {right(0.7071).within(0.01), wrong(1, "The mean is [1 1], and that is longer than 1."),
                 wrong(0.5, "Each was clipped by itself: that is the third way."),
                 wrong(0.4472, "That is the running sum, clipped twice: the second way."),
                 wrong(2, "So it comes. Then it is divided, and clipped.")},
                hint("How long is the mean of both, [1 1]?", "Divide [1 1] by its length."),
                "[1 1] is 1.41 long; clipped it is [1 1] / 1.41. So would it be in a full batch.");
        auto ways = table({"clipped", "gradient"});
        ways.row("once: divide by 2, add, clip", two_once);
        ways.row("the running sum, nothing divided", two_running);
        ways.row("each, then the mean of both", two_mean);
        check_ways(two_once, two_running, two_mean);
        drawn(two_once, two_running, running(two, 1, true), two_mean);
        note("The first is what the full batch gives. Clipping is not additive.");

        predict("The toy, limit 0.5, each micro-loss divided by 3. Clipping after each backward gives",
                {right("the right one"),
                 wrong("a shorter one", "It ends with a clip at 0.5, as the right one does."),
                 wrong("a turned one", "It turns where an early clip does something. Does one here?"),
                 wrong("a longer one", "The last thing that is done is a clip.")},
                hint("How long is the running gradient before the last micro-batch?",
                     "Lesson 7 printed it: [-0.0625 -0.0208 -0.2708] after two of three."),
                "Until then it is shorter than 0.5: only the last clip does anything.");
        const auto micros = split(Toy::six_rows(), 2);
        std::vector<double> norms;
        const Array<real> toy_once = once(micros, 0.5), toy_running = running(micros, 0.5, true, &norms),
                          toy_mean = mean_of_clipped(micros, 0.5);
        auto on_toy = table({"clipped", "gradient"});
        on_toy.row("once", toy_once);
        on_toy.row("after each backward", toy_running);
        on_toy.row("each, then the mean", toy_mean);
        show("norms, running", norms);
        check_toy(toy_once, toy_running, toy_mean, norms);

        step("Luck. Clip after each backward, with and without dividing first:");
        auto luck = table({"", "nothing divided", "each divided"});
        luck.row("[2 0] [0 2] at 1", two_running, running(two, 1, true));
        luck.row("the toy at 0.5", running(micros, 0.5, false), toy_running);
        const Array<real> short_once = once(micros, 0.15), short_running = running(micros, 0.15, true);
        luck.row("the toy at 0.15", running(micros, 0.15, false), short_running);
        show("right at 0.15", short_once);
        check_luck(short_once, short_running, running(micros, 0.5, false));

        step(say("Decay leaves w 1 - {} x 0.5 of itself: once per window, or after each of {}.", rate, n));
        auto decayed_once = number(1), decayed_each = number(1);
        Sgd decays_once({decayed_once}, {.learning_rate = rate, .weight_decay = 0.5});
        Sgd decays_each({decayed_each}, {.learning_rate = rate, .weight_decay = 0.5});
        Window decay_window(decays_once, {.micro_batches = n});
        for (int micro = 0; micro < n; ++micro) {
            decay_window.add(Loss(decayed_once * 0.0));  // no gradient, so only the decay acts
            (decayed_each * 0.0).backward();
            decays_each.step();
        }
        decay_window.finish();
        auto decay = table({"decay", "w, from 1", "formula"});
        decay.row("once", decayed_once.item(), 1 - rate * 0.5);
        decay.row(say("{} times", n), decayed_each.item(), std::pow(1 - rate * 0.5, n));
        check_decay(decayed_once.item(), decayed_each.item());
        note("One framework did this, and clipped per micro-batch too, until July 2024: Keras 3.");

        step(
            say("A wrapper that calls step() after every micro-batch, with zeros until the {}:", last_one()));
        auto w_once = number(0), w_zeros = number(0);
        Sgd momentum_once({w_once}, {.learning_rate = rate, .momentum = 0.9});
        Sgd momentum_zeros({w_zeros}, {.learning_rate = rate, .momentum = 0.9});
        speaks = true;
        const Vector momentum{through_windows(momentum_once, w_once),
                              zeros_in_between(momentum_zeros, w_zeros)};
        speaks = false;

        // The first gradient changes w in 2 or n + 1 calls of step(), and the second gradient in 1 call.
        const Vector lengths{(1 - std::pow(0.9, 2)) / 0.1 + 1, (1 - std::pow(0.9, n + 1)) / 0.1 + 1};
        predict(
            say("Momentum 0.9, rate {}, g = 1: two updates move w from 0 to {}. By that wrapper, to", rate,
                -rate * lengths[0]),
            {right(in_hundredths(-rate * lengths[1])).within(std::round(rate * 5000) / 1e5),
             wrong(-rate * lengths[0], "A zero is a gradient: step() moves w by what momentum still holds."),
             wrong(-2 * rate, "So it would be without momentum."),
             wrong(-2 * n * rate, say("Momentum shrinks at each of the {} calls; the gradient is 0 at {}.",
                                      to_text(2 * n), to_text(2 * n - 2))),
             wrong(-n * rate, "The buffer is not full at each call: it shrinks to 0.9 of it.")},
            hint("What does step() do with a gradient of 0 while the buffer holds 1?",
                 n == 2 ? "After the first 1 the buffer is 1, 0.9; then another 1 comes."
                        : say("After the first 1 the buffer is 1, 0.9, 0.81{}; then another 1 comes.",
                              n == 3   ? ""
                              : n == 4 ? ", 0.73"
                                       : ", ...")),
            "The buffer is not empty when a zero comes: it shrinks, and w moves.");
        auto carried = table({"two updates", "w", "formula"});
        carried.row("once per window", momentum[0], -rate * lengths[0]);
        carried.row("zeros in between", momentum[1], -rate * lengths[1]);
        check_momentum(momentum, lengths);
        note("A gradient of zeros is a gradient. A parameter that has none would be skipped.");

        step("Adam, likewise: it divides its averages by 1 - beta^t. t may count calls, or windows.");
        auto a_once = number(0), a_zeros = number(0);
        Adam adam_once({a_once}, {.learning_rate = rate}), adam_zeros({a_zeros}, {.learning_rate = rate});
        const Vector adam{through_windows(adam_once, a_once), zeros_in_between(adam_zeros, a_zeros),
                          adam_with_t_of_windows()};
        auto counts = table({"two updates", "w", "formula"});
        const Vector closed{-2 * rate, adam_in_closed_form(false), adam_in_closed_form(true)};
        counts.row("once per window", adam[0], closed[0]);
        counts.row("zeros, t counts calls", adam[1], closed[1]);
        counts.row("zeros, t counts windows", adam[2], closed[2]);
        check_adam(adam, closed);

        step("The schedule and the moving average count updates, not micro-batches.");
        const Schedule tenths = Schedule::step(rate, 2, 0.1);
        auto w = number(0);
        MovingAverage<real> each_update({w}, {.decay = 0.9}), each_micro({w}, {.decay = 0.9});
        each_update.update(), each_micro.update();  // the average begins at 0
        w.modify_value([](Array<real>& value) { value = Array<real>::full({1}, real(1), options().device); });
        for (int window = 0; window < 4; ++window) {
            each_update.update();
            for (int micro = 0; micro < n; ++micro) each_micro.update();
        }
        auto late =
            table({say("after 4 windows of {}", n), "rate, a tenth every 2", "average, w from 0 to 1"});
        late.row("per update", tenths.at(4), each_update.value(0).item());
        char tiny[16];
        std::snprintf(tiny, sizeof tiny, "%.0e", tenths.at(4 * n));
        late.row("per micro-batch", tiny, each_micro.value(0).item());
        check_counts(tenths, each_update.value(0).item(), each_micro.value(0).item());

        step("Window does all of it in finish(): four updates, as 1, 3 or 6 micro-batches.");
        const Trained one = four_updates(1), three = four_updates(3), six = four_updates(6);
        const Trained hand = four_updates_by_hand();
        auto trained = table({"micro-batches", "w", "its moving average"});
        trained.row("1", one.w, one.average);
        trained.row("3", three.w, three.average);
        trained.row("6", six.w, six.average);
        trained.row("by hand", hand.w, hand.average);
        check_trained(one, three, six, hand);
    }

    inline static bool speaks = false;  // whether the next run shows its code

    using Vector = std::vector<double>;

    // ---- three ways to clip ----

    // The losses of these micro-batches are linear, so each gradient is the mean of the micro-batch's rows.
    using Micros = std::vector<Tensor>;

    static Micros two_directions() {
        return split(constant(Array<real>({2, 2}, {2, 0, 0, 2}, options().device)), 1);
    }

    static Array<real> once(const Micros& micros, double limit) {
        auto w = parameter(Array<real>::zeros({micros[0].shape()[1]}, options().device));
        if (speaks) code(2);
        for (const auto& micro : micros) (mean(matmul(micro, w)) / micros.size()).backward();
        clip_grad_norm<real>({w}, limit);
        return w.grad().clone();
    }

    static Array<real> running(const Micros& micros, double limit, bool divided,
                               std::vector<double>* norms = nullptr) {
        auto w = parameter(Array<real>::zeros({micros[0].shape()[1]}, options().device));
        for (const auto& micro : micros) {
            if (speaks && !w.has_grad()) code(2);
            (mean(matmul(micro, w)) / (divided ? micros.size() : 1)).backward();
            const double norm = clip_grad_norm<real>({w}, limit);
            if (norms) norms->push_back(norm);
        }
        return w.grad().clone();
    }

    static Array<real> mean_of_clipped(const Micros& micros, double limit) {
        Array<real> total = Array<real>::zeros({micros[0].shape()[1]}, options().device);
        for (const auto& micro : micros) {
            auto w = parameter(Array<real>::zeros(total.shape(), options().device));
            if (speaks && &micro == &micros.front()) code(3);
            mean(matmul(micro, w)).backward();
            clip_grad_norm<real>({w}, limit);
            add_scaled(total, 1.0 / double(micros.size()), w.grad());
        }
        return total;
    }

    // ---- optimizers that are called between updates ----

    // Calls step() after each micro-batch, like a wrong wrapper. Only the last micro-batch has a gradient.
    double zeros_in_between(Optimizer<real>& optimizer, const Tensor& w) const {
        for (int call = 1; call <= 2 * n; ++call) {
            if (speaks && call == 1) code(2);
            (w * (call % n == 0 ? 1.0 : 0.0)).backward();
            optimizer.step();
            optimizer.zero_grad();
        }
        return double(w.item());
    }

    double through_windows(Optimizer<real>& optimizer, const Tensor& w) const {
        Window window(optimizer, {.micro_batches = n});
        for (int update = 0; update < 2; ++update) {
            for (int micro = 0; micro < n; ++micro) window.add(Loss(w * 1.0));
            window.finish();
        }
        return double(w.item());
    }

    // Computes Adam with a wrong wrapper, in which t counts updates but the moments change at each call.
    double adam_with_t_of_windows() const {
        real w = 0, m = 0, v = 0;
        for (int call = 1; call <= 2 * n; ++call) {
            const real g = call % n == 0 ? real(1) : real(0);
            const int t = (call - 1) / n + 1;
            m = real(0.9) * m + real(0.1) * g;
            v = real(0.999) * v + real(0.001) * g * g;
            w -= real(rate / (1 - std::pow(0.9, t))) * m /
                 (std::sqrt(v) / real(std::sqrt(1 - std::pow(0.999, t))) + real(1e-8));
        }
        return double(w);
    }

    // ---- everything at once ----

    struct Trained {
        Vector w, average;
    };

    Schedule halving() const { return Schedule::step(rate, 2, 0.5); }

    Trained four_updates(std::int64_t micro_batches) {
        auto w = parameter(Array<real>({3}, {0.5, -1.25, 0.75}, options().device));
        MovingAverage<real> average({w}, {.decay = 0.9});
        // clang-format off
        if (micro_batches == 1) code(1);
        const Window<real>::Options each_once{.total = 6, .max_norm = 0.5, .schedule = halving(), .average = &average};
        // clang-format on
        Sgd optimizer({w}, {.momentum = 0.9, .weight_decay = 0.5});
        Window window(optimizer, each_once);
        for (int update = 0; update < 4; ++update) {
            for (const auto& micro : split(Toy::six_rows(), 6 / micro_batches))
                window.add(Loss(matmul(micro, w)));
            window.finish();
        }
        const auto ends = w.value().to_vector(), averages = average.value(0).to_vector();
        return {{ends.begin(), ends.end()}, {averages.begin(), averages.end()}};
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static void drawn(const Array<real>& once, const Array<real>& running, const Array<real>& divided,
                      const Array<real>& mean) {
        Scissors lane{{"a micro-batch's gradient", "w.grad, a running sum", "after the last one", "step"},
                      {}};
        lane.cuts = {{0, "each gradient by itself, then the mean of them", to_string(mean)},
                     {1, "the running sum, nothing divided", to_string(running)},
                     {1, "the running sum, each divided by their number", to_string(divided)},
                     {2, "once: each divided by their number, added, then clipped", to_string(once), true}};
        graph("scissors", "Where a gradient may be clipped, and what [2 0] and [0 2] come to at limit 1",
              lane);
    }

    // Rounds w to a multiple of a tenth of the learning rate, so that w has few digits.
    double in_hundredths(double w) const { return std::round(w / rate * 10) / 10 * rate; }

    std::string last_one() const {
        return n == 2 ? "second" : n == 3 ? "third" : n == 5 ? "fifth" : to_text(n) + (n == 8 ? "h" : "th");
    }

    static Tensor number(double value) {
        return parameter(Array<real>({1}, {static_cast<real>(value)}, options().device));
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // These gradients of the toy are computed in double from the decimals of x, without the engine.
    inline static const std::vector<Vector> toy_means{
        {-0.375, -0.375, -0.1875}, {0.1875, 0.3125, -0.625}, {-0.8733, 0.1245, -1.025}};
    inline static const Vector toy_full{-2.1216 / 6, 0.1240 / 6, -3.6750 / 6};

    static Vector clipped(Vector g, double limit) {
        double squares = 0;
        for (const double component : g) squares += component * component;
        const double factor = std::min(1.0, limit / (std::sqrt(squares) + 1e-6));
        for (double& component : g) component *= factor;
        return g;
    }

    static Vector running_by_hand(double limit, double divisor) {
        Vector buffer(3);
        for (const Vector& g : toy_means) {
            for (std::size_t i = 0; i < 3; ++i) buffer[i] += g[i] / divisor;
            buffer = clipped(buffer, limit);
        }
        return buffer;
    }

    // k calls after a gradient of 1 the moments are 0.1 x 0.9^k and 0.001 x 0.999^k. Epsilon is negligible.
    double adam_in_closed_form(bool t_counts_windows) const {
        double w = 0;
        for (int call = n; call <= 2 * n; ++call) {
            const int k = call - n, t = !t_counts_windows ? call : call == n ? 1 : 2;
            const double m = 0.1 * (std::pow(0.9, k) + (call == 2 * n ? 1 : 0));
            const double v = 0.001 * (std::pow(0.999, k) + (call == 2 * n ? 1 : 0));
            w -= rate * (m / (1 - std::pow(0.9, t))) / std::sqrt(v / (1 - std::pow(0.999, t)));
        }
        return w;
    }

    Trained four_updates_by_hand() const {
        Vector w{0.5, -1.25, 0.75}, average, buffer(3);
        for (int update = 0; update < 4; ++update) {
            const Vector g = clipped(toy_full, 0.5);
            for (std::size_t i = 0; i < 3; ++i) {
                buffer[i] = 0.9 * buffer[i] + g[i] + 0.5 * w[i];
                w[i] -= (update < 2 ? rate : rate / 2) * buffer[i];
            }
            if (update == 0) average = w;
            for (std::size_t i = 0; i < 3; ++i) average[i] = 0.9 * average[i] + 0.1 * w[i];
        }
        return {w, average};
    }

    // The gradients are smaller than 2, and clipping a sum of gradients rounds fewer than 16 times.
    static constexpr double rounded = 2 * roundings(16);

    static void check_ways(const Array<real>& once, const Array<real>& running, const Array<real>& mean) {
        // PyTorch clips with the factor limit / (norm + 1e-6), which is not exactly limit / norm.
        const double root2 = std::sqrt(2), root5 = std::sqrt(5);
        check_close("1/root 2", once, {1 / root2, 1 / root2}, 1e-6 + rounded);
        check_close("1/root 5", running, {1 / root5, 2 / root5}, 1e-6 + rounded);
        check_close("1/2", mean, {0.5, 0.5}, 1e-6 + rounded);
    }

    static void check_luck(const Array<real>& short_once, const Array<real>& short_running,
                           const Array<real>& undivided) {
        check_close("divided, by hand", short_running, running_by_hand(0.15, 3), rounded);
        check_close("undivided, by hand", undivided, running_by_hand(0.5, 1), rounded);
        check_close("once, by hand", short_once, clipped(toy_full, 0.15), rounded);
        const double apart = double(short_running.to_vector()[0] - short_once.to_vector()[0]);
        check("at 0.15 luck has run out", std::abs(apart) > 0.005);
    }

    void check_adam(const Vector& adam, const Vector& closed) const {
        // A call rounds fewer than 25 times. Roots exceed 0.2, so epsilon changes a step by less than 1e-7.
        check_close("the formulas", adam, closed, 1e-6 + roundings(25 * n));
        if (settings_changed()) return;
        check_close("and in digits", adam, {-0.2, -0.2446, -0.3689}, 5e-5);
    }

    static void check_trained(const Trained& one, const Trained& three, const Trained& six,
                              const Trained& hand) {
        // Each of the 4 updates rounds fewer than 30 times. The factors 2 and 3.5 bound |w| and the momentum.
        const double bound = 2 * 3.5 * roundings(120);
        const auto joined = [](const Trained& a, const Trained& b, const Trained& c, Vector Trained::*what) {
            Vector all = a.*what;
            for (const Trained* more : {&b, &c})
                all.insert(all.end(), (more->*what).begin(), (more->*what).end());
            return all;
        };
        check_close("w, by hand", joined(one, three, six, &Trained::w), joined(hand, hand, hand, &Trained::w),
                    bound);
        check_close("averages", joined(one, three, six, &Trained::average),
                    joined(hand, hand, hand, &Trained::average), bound);
    }

    void check_decay(real once, real each) const {
        const double factor = 1 - rate * 0.5;
        check_close(say("{} and {}^{}", factor, factor, n), {once, each},
                    {real(factor), real(std::pow(factor, n))}, roundings(4 * n));
        if (!settings_changed())
            check_close("0.95^4 in digits", each, 95.0 * 95 * 95 * 95 / 1e8, roundings(16));
    }

    void check_momentum(const Vector& momentum, const Vector& lengths) const {
        check_close("the formula", momentum, {-rate * lengths[0], -rate * lengths[1]}, roundings(10 * n));
        if (settings_changed()) return;
        check_close("-0.29 and -0.50951", momentum, {-0.29, -0.50951}, roundings(40));
    }

    void check_counts(const Schedule& tenths, real each_update, real each_micro) const {
        check_close("rates", {tenths.at(4) / rate / 1e-2, tenths.at(4 * n) / rate / std::pow(0.1, 2 * n)},
                    {1.0, 1.0}, gamma_bound<double>(16 * n));
        check_close(say("1 - 0.9^4 and 1 - 0.9^{}", 4 * n), {each_update, each_micro},
                    {1 - std::pow(0.9, 4), 1 - std::pow(0.9, 4 * n)}, roundings(16 * n));
    }

    static void check_toy(const Array<real>& once, const Array<real>& running, const Array<real>& mean,
                          const std::vector<double>& norms) {
        check("prints [-0.2499  0.0146 -0.4328]", to_string(once) == "[-0.2499  0.0146 -0.4328]");
        check("prints [-0.1755 -0.0238 -0.3259]", to_string(mean) == "[-0.1755 -0.0238 -0.3259]");
        check_close("the same", running, once, rounded);
        check("by luck: only the last was too long", norms[0] < 0.5 && norms[1] < 0.5 && norms[2] > 0.5);
    }
};

const RegisterLesson<OncePerUpdate> lesson(
    {.number = 13,
     .slug = "once-per-update",
     .title = "once per update",
     .minutes = 20,
     .steps = 10,
     .parameters = {whole_number("micro", "micro-batches of a window, from the decay on", 4, 2, 8),
                    learning_rate(0.1, 0.01, 0.2)}});

}  // namespace
