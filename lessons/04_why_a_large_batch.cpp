// Lesson 4: the gradient of b items is an estimate with variance sigma^2 / b, so large batches reduce noise.
#include "course/kit/pictures.hpp"
#include "course/kit/talk.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct WhyALargeBatch {
    // b is the size of the large batch, and `micro` and `few` are the sizes of smaller batches.
    const int b = setting("items"), micro = b / 4, few = b / 16;
    const double rate = setting("rate");
    Tensor w = parameter(Array<real>({2}, {3, -1}, options().device));

    void talk() {
        step("Items x scatter around (1, 2). An item's loss: |w - x|^2 / 2.");
        note("Their variance, the mean squared distance from the middle, is 4 on each axis.");
        note("A loss's gradient is w - x. Over all items that is w - (1, 2) = (2, -3): the truth.");
        show("w", w);
        auto some = table({"from", "gradient"});
        for (const int size : {1, few, micro, b}) some.row(many(size, "items"), estimate(items(size, 0)));
        note("Nobody can look at all items. A batch gives an estimate.");

        step(say("Sixty batches of one item, sixty of {}: where do their gradients lie?", micro));
        std::vector<Series> cloud{
            {"from 1 item", {}, {}}, {say("from {} items", micro), {}, {}}, {"the truth", {2}, {-3}}};
        for (const int size : {1, micro})
            for (int draw = 0; draw < 60; ++draw) {
                const std::vector<real> g = estimate(items(size, draw));
                cloud[size == micro].x.push_back(double(g[0]));
                cloud[size == micro].y.push_back(double(g[1]));
            }
        plot("gradients, first component across, second up", cloud);
        drawn(cloud);

        predict(
            "The spread is the root of the variance. For half of it, a batch has how many times as many "
            "items?",
            {right(4), wrong(2, "Twice the items halve the variance. The spread is its root."),
             wrong(1.4, "The other way round: twice the items, and the spread is 1.4 times smaller."),
             wrong(8, "The spread would be 2.8 times smaller."), wrong(16, "The spread would be a quarter.")},
            hint("How does the variance of a mean fall with the number of items?",
                 "Take 4 / b for b and for twice b, and the square roots of both."),
            "The variance falls as 1/b; the spread is its root.");
        auto noise = table({"items", "measured variance", "4 / items", "ratio", "spread"});
        for (const int size : {1, few, micro, b}) {
            const double variance = measured([&](int draw) { return estimate(items(size, draw)); });
            noise.row(size, variance, 4.0 / size, variance / (4.0 / size), std::sqrt(variance));
        }
        check_close("the ratios are near 1", noise.column("ratio"), {1.0, 1.0, 1.0, 1.0}, allowed);

        step(say("{} items in four micro-batches of {}, accumulated: as good as {} at once?", b, micro, b));
        const auto batch = items(b, 0);
        show(say("{} at once", b), estimate(batch));
        show(say("4 x {}", micro), accumulated(batch));
        check_the_same(batch);
        const double variance = measured([&](int draw) { return accumulated(items(b, draws + draw)); });
        show("variance over 2000 draws", variance);
        check_close(say("fresh draws: variance / (4 / {})", b), variance / (4.0 / b), 1.0, allowed);

        const double left_by_one = 1 - rate, left_by_four = std::pow(left_by_one, 4);
        predict(say("With a learning rate of {}, one update of {} leaves {} of the way to go. Four updates "
                    "of {} leave",
                    rate, b, left_by_one, micro),
                {right(left_by_four).within(0.005),
                 wrong(left_by_one, "Four times the rate is gone, not once: each update goes by itself."),
                 wrong(1 - 4 * rate,
                       say("Not {} of the whole way each: {} of what is left by then.", rate, rate)),
                 wrong(left_by_one / 4, say("Nothing is divided by 4. Each update leaves {}.", left_by_one)),
                 wrong(1 - left_by_four, "That is what has been gone. What is left?")},
                hint("What does the second update see: the whole way, or what the first has left?",
                     say("{} of the way; then {} of that; and twice more.", left_by_one, left_by_one)),
                say("Each looks again: {} of {} of {} of {}.", left_by_one, left_by_one, left_by_one,
                    left_by_one));
        note(say("Seen with the loss w^2 / 2: its slope is w, so each update takes {} w off w.", rate));
        auto left = table({"updates", "w"});
        auto distance = parameter(real(1));
        for (int update = 1; update <= 4; ++update) {
            distance.zero_grad();
            (pow(distance, 2) / 2).backward();
            sgd_step({distance}, rate);
            left.row(update, distance);
        }
        note("Fewer updates per epoch: learning rate or epochs must be tuned again.");
        check_updates(left);
    }

    // Draws items in the plane around (1, 2), with variance 4 along each axis. Each pair of `size` and `draw`
    // has its own random numbers, so that batches are independent.
    static Tensor items(int size, int draw) {
        const auto stream = static_cast<std::uint64_t>(size) << 32 | static_cast<std::uint64_t>(draw);
        const Tensor middle = Array<real>({2}, {1, 2}, options().device);
        const Tensor around_0 = randn<real>({size, 2}, 0, sigma, {.seed = options().seed, .stream = stream})
                                    .value()
                                    .to(options().device);
        return around_0 + middle;
    }

    // The loss of an item x is |w - x|^2 / 2. The loss of a batch is the mean over its items.
    Tensor loss_of(const Tensor& batch) const { return mean(sum(pow(w - batch, 2), {1})) / 2; }

    std::vector<real> estimate(const Tensor& batch) const {
        return grad(loss_of(batch), {w}).front().to_vector();
    }

    // Returns the gradient of the large batch, accumulated over four micro-batches.
    std::vector<real> accumulated(const Tensor& batch) const {
        w.zero_grad();
        for (const auto& part : split(batch, micro)) (loss_of(part) / 4).backward();
        return w.grad().to_vector();
    }

    // Returns the mean square error of the gradients of many draws, averaged over both components.
    template <class Draw> static double measured(Draw gradient_of_draw) {
        double squares = 0;
        for (int draw = 0; draw < draws; ++draw) {
            const std::vector<real> g = gradient_of_draw(draw);
            squares += std::pow(double(g[0]) - 2, 2) + std::pow(double(g[1]) + 3, 2);
        }
        return squares / (2 * draws);
    }
    static constexpr int draws = 2000;
    static constexpr double sigma = 2;  // standard deviation along each axis

    // ---- tools: the picture ----------------------------------------------------------------------------

    // Draws the estimated gradients, and circles around the true gradient whose radii are sigma / root(b).
    void drawn(const std::vector<Series>& cloud) const {
        Plane plane;
        plane.across = "first component of the gradient", plane.up = "second component";
        for (std::size_t i = 0; i < 2; ++i) plane.points.push_back({cloud[i].label, cloud[i].x, cloud[i].y});
        plane.middle_label = cloud[2].label;
        plane.middle_x = cloud[2].x[0], plane.middle_y = cloud[2].y[0];
        for (const int size : {1, micro}) {
            const double spread = sigma / std::sqrt(size);
            plane.circles.push_back(
                {"spread " + short_number(spread) + " = 2 / root(" + std::to_string(size) + ")", spread});
        }
        graph("cloud", say("Sixty gradients of one item, and sixty of {}, around the true one", micro),
              plane);
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    void check_the_same(const Tensor& batch) const {
        const std::vector<real> drawn = batch.value().to_vector(), at = w.value().to_vector();
        std::vector<double> bound(2);  // both gradients have b terms, each with at most b + 6 roundings
        for (std::size_t i = 0; i < drawn.size(); ++i)
            bound[i % 2] += 2 * roundings(b + 6) * std::abs(double(at[i % 2]) - double(drawn[i])) / b;
        check_close("the same gradient", accumulated(batch), estimate(batch), bound);
    }

    // A measured variance of R draws, divided by the true variance, has the mean 1 and the standard deviation
    // sqrt(2 / 2R). (2R times this ratio is chi-square with 2R degrees of freedom.) A bound of five standard
    // deviations fails for fewer than one seed in a million.
    const double allowed = 5 * std::sqrt(2.0 / (2 * draws));

    void check_updates(const Table& left) const {
        const auto after = values(left.column("w"));
        check_close("one update, four updates", {after[0], after[3]}, {1 - rate, std::pow(1 - rate, 4)},
                    roundings(12));
    }
};

const RegisterLesson<WhyALargeBatch> lesson(
    {.number = 4,
     .slug = "why-a-large-batch",
     .title = "why a large batch",
     .minutes = 15,
     .steps = 5,
     .parameters = {one_of("items", "items of the large batch", 64, {32, 64, 128, 256}),
                    real_number("rate", "learning rate", 0.1, 0.03, 0.9)}});

}  // namespace
