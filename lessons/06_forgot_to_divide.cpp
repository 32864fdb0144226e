// Lesson 6: micro-batch gradients left to add up are N times too large.
#include "tally/lesson/toy.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct ForgotToDivide : Toy {  // six rows x, three weights w
    void talk() {
        step("The full batch once more: six rows, one loss, the gradient we want.");
        code(2);
        auto loss = mean(matmul(x, w));
        loss.backward();
        const auto full = w.grad().clone();
        show("loss", loss);
        show("w.grad", full);
        check("prints [-0.3536  0.0207 -0.6125]", to_string(full) == "[-0.3536  0.0207 -0.6125]");

        step("Three micro-batches of 2 rows. w.grad is NOT cleared in between.");
        w.zero_grad();
        auto after = table({"rows", "loss", "this micro-batch", "w.grad after it"});
        for (const auto& [micro, rows] : micro_batches(2)) {
            if (!w.has_grad()) code(2);
            auto part = mean(matmul(micro, w));
            part.backward();
            const auto this_one = grad(mean(matmul(micro, w)), {w}).front();  // touches no leaf
            after.row(rows, part, this_one, w.grad());
        }
        const auto sum = w.grad().clone();
        graph("forgot-to-divide", "What a row counts in the full batch and in a micro-batch",
              shares(micro_batches(2), full, sum));
        check_micro_batches(after, sum);

        predict(
            "[-1.0608 0.0620 -1.8375] is the full-batch gradient times",
            {right(3).within(0.005), wrong(1, "Three gradients have been added, and nothing was divided."),
             wrong(2, "Two is the number of rows in a micro-batch. The mean took care of these."),
             wrong(6, "That would be sums of rows. But each micro-batch has taken a mean, by 2."),
             wrong(1.0 / 3, "The other way round: which of the two is the larger?")},
            hint("What does one row weigh in a mean of two, and in a mean of six?",
                 "Compare the two first components: -1.0608 and -0.3536."),
            "A row weighs 1/2 in a micro-batch of two, and 1/6 in the full batch.");
        show("full batch", full);
        show("sum of 3x2", sum);
        show("sum / full", quotients(sum, full));
        check_three_times(sum, full);

        predict(
            "So what? sgd_step({w}, 0.1) with this gradient takes a step that is",
            {right("3 times as long"),
             wrong("in another direction", "Every component is too large by the same factor."),
             wrong("as long as before", "SGD goes the rate times what stands in w.grad, whatever that is."),
             wrong("1/3 as long", "A gradient that is too large does not make a step smaller.")},
            hint("What does SGD multiply the rate by?", "w - 0.1 g: put in the one g, then the other."),
            "The direction is right, the length is not.");
        const Tensor by_mean = weights(), by_sum = weights();
        mean(matmul(x, by_mean)).backward();
        for (const auto& micro : split(x, 2)) mean(matmul(micro, by_sum)).backward();
        code(1);
        sgd_step({by_mean, by_sum}, 0.1);
        auto moves = table({"", "w", "moved by"});
        moves.row("before", w, "");
        moves.row("full batch", by_mean, way(by_mean));
        moves.row("sum of 3x2", by_sum, way(by_sum));
        check_steps(by_mean, by_sum);
        note("As if the rate were 0.3. What was stable may not be any more.");
    }

    static std::vector<double> quotients(const Array<real>& a, const Array<real>& b) {
        std::vector<double> all;
        for (std::size_t i = 0; i < 3; ++i) all.push_back(values(a)[i] / values(b)[i]);
        return all;
    }

    std::vector<double> way(const Tensor& to) const {
        std::vector<double> difference = values(to);
        for (std::size_t i = 0; i < 3; ++i) difference[i] -= values(w)[i];
        return difference;
    }

    // ---- the witness -----------------------------------------------------------------------------------------

    static void check_micro_batches(const Table& after, const Array<real>& sum) {
        double losses = 0;
        for (const double loss : values(after.column("loss"))) losses += loss / 3;
        check("prints [-1.0608  0.0620 -1.8375]", to_string(sum) == "[-1.0608  0.0620 -1.8375]");
        check_close("the means of two rows", after.column("this micro-batch"),
                    {-0.375, -0.375, -0.1875, 0.1875, 0.3125, -0.625, -0.8733, 0.1245, -1.025},
                    roundings(4) * 2);
        check_close("mean of the losses = full loss", losses, -3.97205 / 6, roundings(12) * 2);
    }

    void check_three_times(const Array<real>& sum, const Array<real>& full) const {
        std::vector<real> three_times;
        for (const real component : full.to_vector()) three_times.push_back(3 * component);
        check_close("sum of three = 3 x full", sum, three_times, bound);
        check_close("the sum, in exact decimals", sum, {-1.0608, 0.0620, -1.8375}, bound);
    }

    void check_steps(const Tensor& right, const Tensor& wrong) const {
        std::vector<double> expected, step_bound, ratios;
        for (std::size_t i = 0; i < 3; ++i) {
            ratios.push_back(way(wrong)[i] / way(right)[i]);
            expected.push_back(3 * way(right)[i]);
            // 17 roundings on the way to the two steps, and one each where w + step is rounded to a new w.
            const double ends = std::abs(values(wrong)[i]) + 3 * std::abs(values(right)[i]);
            step_bound.push_back(0.1 * bound[i] * roundings(17) / roundings(8) + roundings(1) * ends);
        }
        check("before rounding: 3.00 3.00 3.00 times as far",
              row_text(Numbers(ratios), 2) == " 3.00  3.00  3.00");
        check_close("moved 3 times as far", way(wrong), expected, step_bound);
        check_close("0.3 x g", way(wrong), {0.3 * 2.1216 / 6, -0.3 * 0.1240 / 6, 0.3 * 3.6750 / 6},
                    step_bound);
    }

    // 3 x full: weight, product, 5 additions, times 3, so 8 roundings at most. The sum of the halves is exact
    // but for its last addition, and that fits into what later rows leave unused of their 8.
    const std::vector<double> bound = mean_columns(3 * roundings(8));
};

const Given<ForgotToDivide> lesson(
    {.number = 6, .slug = "forgot-to-divide", .title = "forgot to divide", .minutes = 10, .steps = 4});

}  // namespace
