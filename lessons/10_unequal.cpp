// Lesson 10: micro-batches of unequal sizes need the weights b_k / B. An unweighted mean is wrong.
#include "course/kit/toy.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct Unequal : Toy {
    using Sizes = std::vector<std::int64_t>;
    const Sizes sizes = setting("split");
    const std::int64_t n = std::ssize(sizes), small = *std::min_element(sizes.begin(), sizes.end()),
                       large = *std::max_element(sizes.begin(), sizes.end());

    void talk() {
        step(say("Six rows as {}: what each micro-batch's own mean sends back.", sum_of(sizes)));
        auto own = table({"rows", "b", "g, the gradient of its mean"});
        for (const auto& [micro, rows] : micro_batches(sizes))
            own.row(rows, micro.shape()[0], grad(mean(matmul(micro, w)), {w}).front());
        check_own(own);

        if (small == large)  // equal sizes leave nothing to predict
            step(n == 1 ? "One micro-batch is the full batch: there is nothing to go wrong."
                        : say("All sizes are equal, so the sum divided by N = {} is right: a row weighs 1/6.",
                              n));
        else
            predict(say("The sum of {}, divided by N = {} as in lesson 7, is", n == 2 ? "both" : "all", n),
                    {right("another direction"),
                     wrong("the full gradient",
                           say("Then each row would weigh 1/6. What does {} weigh?",
                               small == 1 ? "a row that is alone" : "one of the " + to_text(small))),
                     wrong("twice too long", "One factor for all would need one weight for all."),
                     wrong("half as long", "The weights of all rows still add up to 1.")},
                    hint(say("What does a row of the {} weigh? And {}?", to_text(large), one_of_the(small)),
                         say("{} of {}, or {} of {}.", one_in(large), a_part(), one_in(small), a_part())),
                    say("A row weighs {}, not {}.", of_each("1/{}", n),
                        of_each("1/{}", n).find("1/6") == std::string::npos ? "1/6" : "always 1/6"));
        const std::vector<real> full = grad(mean(matmul(x, w)), {w}).front().to_vector();
        const std::vector<real> of_means = mean_of_means(x, w, sizes);
        auto both = table({"", "gradient"});
        both.row("full batch", six_digits(full));
        both.row("mean of means", six_digits(of_means));
        check_both(full, of_means);

        step(say("The weights b / B: each micro-loss times {}, its share of the rows.", of_each("{}/6", 1)));
        w.zero_grad();
        auto after = table({"rows", "share", "w.grad after it"});
        for (const auto& [micro, rows] : micro_batches(sizes)) {
            if (!w.has_grad()) code(2);
            const double share = double(micro.shape()[0]) / 6;
            (mean(matmul(micro, w)) * share).backward();
            after.row(rows, share, w.grad());
        }
        check_weighed();
        auto shared = shares(micro_batches(sizes), grad(mean(matmul(x, w)), {w}).front(), {});
        shared.divided = values(of_means), shared.weighed = values(w.grad());
        graph("unequal", say("What a row counts in a cut of {}", in_a_row()), shared);

        step(small == large ? "How wrong? Not at all: where all sizes are equal, b has no covariance with g."
                            : "How wrong? By minus the covariance of b and g, over the mean of b.");
        const std::vector<double> g = values(own.column("g, the gradient of its mean"));
        std::vector<double> measured, formula;
        for (std::size_t j = 0; j < 3; ++j) {
            measured.push_back(double(of_means[j]) - double(full[j]));
            std::vector<double> of_j;
            for (std::size_t k = j; k < g.size(); k += 3) of_j.push_back(g[k]);
            formula.push_back(by_formula(sizes, of_j));
        }
        auto compared = table({"how wrong", "component by component"});
        compared.row("mean of means - truth", six_digits(measured));
        compared.row("-Cov(b, g) / mean b", six_digits(formula));
        note(
            "Cov(b, g), the covariance, is the mean of (b - mean b) times (g - mean g). It is 0 where sizes "
            "say nothing about gradients.");
        check_difference(measured, formula);

        predict("Sizes 1, 2, 3 with gradients 1, 0, 1: the mean of means is 2/3. The mean of the six rows is",
                {right(0.6667).within(0.01), wrong(0.5, "How many of the six rows have a 1?"),
                 wrong(1.0 / 3, "One row and three rows have a 1, not two."),
                 wrong(4, "That is the sum of the rows.")},
                hint("What stands in the six rows, one by one?", "1, then 0 0, then 1 1 1."),
                "4/6. The sizes differ, and say nothing about g: the covariance is 0. That was luck.");
        // The sizes 1, 2, 3 and the micro-batches' gradients 1, 0, 1 have the covariance 0.
        const auto one = parameter(Array<real>::full({1}, real(1), options().device));
        const Tensor even = Array<real>({6, 1}, {1, 0, 0, 1, 1, 1}, options().device);
        const double lucky = double(mean_of_means(even, one, {1, 2, 3})[0]);
        show("mean of means", lucky);
        show("mean of the six rows", grad(mean(matmul(even, one)), {one}).front().to_vector().front());
        check_close("truth: 4/6", lucky, 4.0 / 6, roundings(12));

        predict(
            "And if nobody knows B before the last micro-batch has come?",
            {right("add sums, divide at the end"),
             wrong("keep the losses until then",
                   "Then none of what backward needs can be let go before the end."),
             wrong("divide by N, not by B", "That is the mean of means once more."),
             wrong("it cannot be done", "A division may come late: what is it that may be added before?")},
            hint("Which number needs no weight when it is added?",
                 "A mean is a sum over a count: keep both."),
            "A sum needs no weight. finish() divides by what was counted.");
        const auto v = zeros();
        Sgd sgd({v}, {.learning_rate = 1});
        Window window(sgd);
        code(2);
        for (const auto& micro : split(x, sizes)) window.add(Loss(matmul(micro, v)));
        const auto finished = window.finish();
        const Tensor found = Array<real>::zeros({3}, options().device) - v;
        note(
            "A Window keeps a sum and a count, here of the rows of y = matmul(micro, v): Loss(y) has "
            "both.");
        show("the window's gradient", found);
        check_equal("its count", finished.count, 6);
        check_close("found", found, exact_means(), bound);
        const auto [cut, off] = worst_of_all_cuts();
        show("mean of means, the worst of 32 cuts, " + cut + ": off by", off);
        check_all_cuts();
        check_close("4 + 0 + 2", by_window(x, {4, 0, 2}), exact_means(), bound);
    }

    // Returns the gradient that a Window computes from micro-batches of the sizes `cut`. One step from w = 0
    // with the learning rate 1 ends at the negative gradient, without a rounding error.
    static std::vector<real> by_window(const Tensor& rows, const Sizes& cut) {
        const auto v = zeros();
        Sgd sgd({v}, {.learning_rate = 1});
        Window window(sgd);
        for (const auto& micro : split(rows, cut)) window.add(Loss(matmul(micro, v)));
        window.finish();
        std::vector<real> gradient = v.value().to_vector();
        for (real& component : gradient) component = -component;
        return gradient;
    }

    static std::vector<real> mean_of_means(const Tensor& rows, const Tensor& to, const Sizes& cut) {
        to.zero_grad();
        for (const auto& micro : split(rows, cut)) (mean(matmul(micro, to)) / double(cut.size())).backward();
        return to.grad().to_vector();
    }

    // Returns all 32 ways to split six rows: each of the five gaps between rows is cut or not cut.
    static std::vector<Sizes> all_cuts() {
        std::vector<Sizes> cuts;
        for (unsigned after = 0; after < 32; ++after) {
            Sizes cut{1};
            for (unsigned row = 0; row < 5; ++row) {
                if (after >> row & 1)
                    cut.push_back(1);
                else
                    ++cut.back();
            }
            cuts.push_back(cut);
        }
        return cuts;
    }

    static double by_formula(const Sizes& cut, const std::vector<double>& gradients) {
        const double count = double(cut.size());
        double b_mean = 0, g_mean = 0, covariance = 0;
        for (std::size_t k = 0; k < cut.size(); ++k) {
            b_mean += double(cut[k]) / count;
            g_mean += gradients[k] / count;
        }
        for (std::size_t k = 0; k < cut.size(); ++k)
            covariance += (double(cut[k]) - b_mean) * (gradients[k] - g_mean) / count;
        return -covariance / b_mean;
    }

    // Returns the split for which the mean of means has the largest error, and this error.
    std::pair<std::string, double> worst_of_all_cuts() const {
        double most = 0;
        Sizes worst = all_cuts().front();
        for (const Sizes& pieces : all_cuts())
            for (std::size_t j = 0; j < 3; ++j) {
                const double off = std::abs(double(mean_of_means(x, w, pieces)[j]) - exact_means()[j]);
                if (off > most) most = off, worst = pieces;
            }
        return {sum_of(worst), most};
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static std::string one_of_the(std::int64_t k) {
        return k == 1 ? "a row that is alone" : "a row of the " + to_text(k);
    }
    std::string a_part() const { return n == 2 ? "a half" : say("1/{}", n); }

    // Returns a text such as "4/6 or 2/6", in which each different size occurs once.
    std::string of_each(std::string_view pattern, std::int64_t factor) const {
        std::vector<std::string> all;
        for (const std::int64_t size : sizes)
            if (const std::string one = say(pattern, factor * size);
                std::find(all.begin(), all.end(), one) == all.end())
                all.push_back(one);
        return list_of(all, "or");
    }
    std::string in_a_row() const {  // returns "four rows and two"
        std::vector<std::string> all;
        for (const std::int64_t size : sizes)
            all.push_back(all.empty() ? many_in_words(size, "rows") : to_text(size));
        return list_of(all, "and");
    }

    static Tensor zeros() { return parameter(Array<real>::zeros({3}, options().device)); }

    static std::string six_digits(const Numbers& numbers) {
        std::string text;
        for (const double number : numbers.values) {
            // prints 0 for -0
            const std::string digits = std::to_string(std::abs(number) < 5e-7 ? 0 : number);
            text += (text.empty() ? "" : " ") + (digits[0] == '-' ? digits : " " + digits);
        }
        return text;
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // Returns the exact sum of the micro-batches' means, as an integer in units of 1/600000.
    std::int64_t of_means(std::size_t j) const {
        std::int64_t sum = 0;
        std::size_t from = 0;
        for (const std::int64_t size : sizes) {
            sum += units(from, from + std::size_t(size), j) * (60 / size);
            from += std::size_t(size);
        }
        return sum;
    }
    std::int64_t of_rows(std::size_t j) const { return units(0, 6, j); }  // the sum of six rows

    void check_own(const Table& own) const {
        const std::vector<double> g = values(own.column("g, the gradient of its mean"));
        std::size_t from = 0, at = 0;
        for (const std::int64_t size : sizes) {
            check_close(say("g of the {}{}", to_text(size), at == 0 ? ", in exact decimals" : ""),
                        {g[at], g[at + 1], g[at + 2]}, exact_means(from, from + std::size_t(size)),
                        roundings(12) * largest_column() / double(size));
            from += std::size_t(size), at += 3;
        }
    }

    void check_both(const std::vector<real>& full, const std::vector<real>& means) const {
        std::vector<double> exact;
        for (std::size_t j = 0; j < 3; ++j) exact.push_back(double(of_means(j)) / double(600000 * n));
        check_close("full", full, exact_means(), bound);
        check_close("means", means, exact, bound);
        if (!settings_changed())
            check("prints these digits", six_digits(full) == "-0.353600  0.020667 -0.612500" &&
                                             six_digits(means) == "-0.483525  0.046625 -0.715625");
    }

    void check_difference(const std::vector<double>& measured, const std::vector<double>& formula) const {
        std::vector<double> exact;
        for (std::size_t j = 0; j < 3; ++j)
            exact.push_back(double(of_means(j) - 10 * n * of_rows(j)) / double(600000 * n));
        check_close("the formula", measured, formula, 4 * bound);
        check_close("in exact decimals", measured, exact, 2 * bound);
        if (!settings_changed())
            check("prints [-0.129925 0.025958 -0.103125]",
                  six_digits(exact) == "-0.129925  0.025958 -0.103125");
    }

    void check_all_cuts() const {
        std::vector<real> windows;
        std::vector<double> truths;
        for (const Sizes& cut : all_cuts())
            for (std::size_t j = 0; j < 3; ++j) {
                windows.push_back(by_window(x, cut)[j]);
                truths.push_back(exact_means()[j]);
            }
        check_close("all 32", windows, truths, bound);
    }

    // The weight of a row is at most 1 / (n small), where `small` is the smallest size of a micro-batch.
    const double bound = roundings(12) * largest_column() / double(n * small);

    void check_weighed() const {
        check("prints [-0.3536  0.0207 -0.6125]", to_string(w.grad()) == "[-0.3536  0.0207 -0.6125]");
        check_close("in exact decimals", w.grad(), exact_means(), bound);
    }
};

const RegisterLesson<Unequal> lesson(
    {.number = 10,
     .slug = "unequal",
     .title = "unequal micro-batches",
     .minutes = 15,
     .steps = 6,
     .parameters = {parts_of("split", "the six rows in micro-batches of these sizes", {4, 2})}});

}  // namespace
