// Lesson 6: the sum of micro-batch gradients is N times too large.
#include "course/kit/toy.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct ForgotToDivide : Toy {  // six rows x, three weights w
    // n is the number of micro-batches, and b is the number of rows in a micro-batch.
    const int n = setting("micro"), b = 6 / n;
    const double rate = setting("rate");

    void talk() {
        step("The full batch once more: six rows, one loss, the gradient we want.");
        code(2);
        auto loss = mean(matmul(x, w));
        loss.backward();
        const auto full = w.grad().clone();
        show("loss", loss);
        show("w.grad", full);
        check("prints [-0.3536  0.0207 -0.6125]", to_string(full) == "[-0.3536  0.0207 -0.6125]");

        step(say("{} of {}.{}", capital(many_in_words(n, "micro-batches")), many(b, "rows"),
                 n == 1 ? "" : " w.grad is NOT cleared in between."));
        note("A micro-batch is a part of the batch. Backward adds to what is there.");
        w.zero_grad();
        auto after = table({"rows", "loss", "this micro-batch", "w.grad after it"});
        for (const auto& [micro, rows] : micro_batches(b)) {
            if (!w.has_grad()) code(2);
            auto part = mean(matmul(micro, w));
            part.backward();
            const auto this_one = grad(mean(matmul(micro, w)), {w}).front();  // does not add to w.grad()
            after.row(rows, part, this_one, w.grad());
        }
        const auto sum = w.grad().clone();
        graph("forgot-to-divide", "What a row counts in the full batch and in a micro-batch",
              shares(micro_batches(b), full, sum));
        check_micro_batches(after, sum);

        predict(
            say("{} is the full-batch gradient times", in_one_row(sum)),
            {right(n).within(0.005),
             wrong(1, say("{} gradients have been added, and nothing was divided.", capital(to_text(n)))),
             wrong(b, say("{} is the number of rows in a micro-batch. The mean took care of these.",
                          capital(to_text(b)))),
             wrong(6, say("That would be sums of rows. But each micro-batch has taken a mean, by {}.", b)),
             wrong(1.0 / n, "The other way round: which of the two is the larger?")},
            hint(say("What does one row weigh in a mean of {}, and in a mean of six?", to_text(b)),
                 say("Compare the two first components: {} and {}.", first_of(sum), first_of(full))),
            say("A row weighs {} in a micro-batch of {}, and 1/6 in the full batch.",
                b == 1 ? "1" : say("1/{}", b), to_text(b)));
        show("full batch", full);
        show(say("sum of {}x{}", n, b), sum);
        show("sum / full", quotients(sum, full));
        check_n_times(sum, full);

        if (n == 1)
            step("With one micro-batch nothing was forgotten: SGD takes the full batch's step.");
        else
            predict(
                say("So what? sgd_step({}, {}) with this gradient takes a step that is", "{w}", rate),
                {right(say("{} times as long", n)),
                 wrong("in another direction", "Every component is too large by the same factor."),
                 wrong("as long as before",
                       "SGD goes the rate times what stands in w.grad, whatever that is."),
                 wrong(say("1/{} as long", n), "A gradient that is too large does not make a step smaller.")},
                hint("What does SGD multiply the rate by?",
                     say("w - {} g: put in the one g, then the other.", rate)),
                "The direction is right, the length is not.");
        note("Two copies of w: by_mean has the full batch's gradient, by_sum the sum.");
        const Tensor by_mean = weights(), by_sum = weights();
        mean(matmul(x, by_mean)).backward();
        for (const auto& micro : split(x, b)) mean(matmul(micro, by_sum)).backward();
        code(1);
        sgd_step({by_mean, by_sum}, rate);
        auto moves = table({"", "w", "moved by"});
        moves.row("before", w, "");
        moves.row("full batch", by_mean, way(by_mean));
        moves.row(say("sum of {}x{}", n, b), by_sum, way(by_sum));
        check_steps(by_mean, by_sum);
        if (n > 1) note(say("As if the rate were {}. What was stable may not be any more.", n * rate));
    }

    static std::vector<double> quotients(const Array<real>& a, const Array<real>& b) {
        std::vector<double> all;
        for (std::size_t i = 0; i < 3; ++i) all.push_back(values(a)[i] / values(b)[i]);
        return all;
    }

    static std::string in_one_row(const Array<real>& a) {  // without the padding of columns
        std::string text = to_string(a);
        while (text.find("  ") != std::string::npos) text.erase(text.find("  "), 1);
        return text;
    }
    static std::string first_of(const Array<real>& a) {
        const std::string text = in_one_row(a);
        return text.substr(1, text.find(' ') - 1);
    }

    std::vector<double> way(const Tensor& to) const {
        std::vector<double> difference = values(to);
        for (std::size_t i = 0; i < 3; ++i) difference[i] -= values(w)[i];
        return difference;
    }

    // ---- independent checks ----------------------------------------------------------------------------------

    void check_micro_batches(const Table& after, const Array<real>& sum) const {
        double losses = 0;
        for (const double loss : values(after.column("loss"))) losses += loss / n;
        std::vector<double> means(std::size_t(3 * n));
        for (std::size_t i = 0; i < 18; ++i) means[i / std::size_t(3 * b) * 3 + i % 3] += values(x)[i] / b;
        const std::string wanted = as_printed(column_sums(n / 6.0));
        check("prints " + wanted, to_string(sum) == wanted);
        check_close("the means of " + many_in_words(b, "rows"), after.column("this micro-batch"), means,
                    roundings(b + 2) * 2);
        check_close("mean of the losses = full loss", losses, -3.97205 / 6, roundings(12) * 2);
    }

    void check_n_times(const Array<real>& sum, const Array<real>& full) const {
        std::vector<real> n_times;
        for (const real component : full.to_vector()) n_times.push_back(real(n) * component);
        check_close(say("sum of {} = {} x full", to_text(n), n), sum, n_times, bound);
        check_close("the sum, in exact decimals", sum, column_sums(n / 6.0), bound);
    }

    void check_steps(const Tensor& right, const Tensor& wrong) const {
        std::vector<double> expected, step_bound, ratios;
        for (std::size_t i = 0; i < 3; ++i) {
            ratios.push_back(way(wrong)[i] / way(right)[i]);
            expected.push_back(n * way(right)[i]);
            // The two steps have at most 17 roundings, and each addition of a step to w has 1 rounding.
            const double ends = std::abs(values(wrong)[i]) + n * std::abs(values(right)[i]);
            step_bound.push_back(rate * bound[i] * roundings(17) / roundings(8) + roundings(1) * ends);
        }
        check(say("before printing: {}.00 {}.00 {}.00 times as far", n, n, n),
              row_text(Numbers(ratios), 2) == say(" {}.00  {}.00  {}.00", n, n, n));
        check_close(n == 1 ? "moved as far" : say("moved {} times as far", n), way(wrong), expected,
                    step_bound);
        check_close(say("-{} x g", n * rate), way(wrong), column_sums(-n * rate / 6), step_bound);
    }

    // Computing n times the gradient rounds at most 8 times: in the weight, in the product, in 5 additions
    // and in the factor n. With weights of 1/3 or 1/6, the addition of n gradients rounds 7 more times.
    const std::vector<double> bound = mean_columns(n * roundings(n > 2 ? 8 : 15));
};

const RegisterLesson<ForgotToDivide> lesson({.number = 6,
                                             .slug = "forgot-to-divide",
                                             .title = "forgot to divide",
                                             .minutes = 10,
                                             .steps = 4,
                                             .parameters = {equal_micro_batches(),
                                                            learning_rate(0.1, 0.01, 1)}});

}  // namespace
