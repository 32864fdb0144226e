// Lesson 12: a mean over tokens must divide the sum of all losses by the number of tokens of the update.
#include <numeric>

#include "course/kit/toy.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct MeanSumToken : Toy {
    const int n = setting("micro"), b = 6 / n;  // number of micro-batches, and of rows or sentences in one

    void talk() {
        step(say("The loss is a sum now, not a mean. {} of {}:", capital(many_in_words(n, "micro-batches")),
                 to_text(b)));
        code(1);
        for (const auto& micro : split(x, b)) sum(matmul(micro, w)).backward();

        predict("For the gradient of the six rows at once, each micro-loss must be divided by",
                {right(1), wrong(n, "That was for means. What does a row weigh in a sum?"),
                 wrong(b, "No sum was divided by its rows, so nothing is to be put right."),
                 wrong(6, "Then it would be the mean again. The loss is the sum.")},
                hint("What does a row weigh in a sum, wherever it stands?",
                     "Add up six rows at once; then add up the sums of parts."),
                "By nothing: a row weighs 1 in every batch.");
        const std::vector<real> whole = gradient_of(sum(matmul(x, w)), w);
        const std::vector<real> twice = gradient_of(sum(matmul(concat(std::vector{x, x}), w)), w);
        show(many_in_words(n, "micro-batches"), w.grad());
        show("six rows at once", whole);
        show("the six rows twice", twice);
        show("ratio to six at once", double(w.grad().to_vector()[0]) / double(whole[0]));
        check_sums(whole, twice);
        note("A sum grows with the batch, and the step with it: retune the rate.");

        step(
            say("Six sentences of 1 2 3 1 4 5 words, {} at a time. A word's loss is its row's:", to_text(b)));
        const Tensor tokens = rows_of_words();
        const Counts in_micro_batch = words_in_each();
        w.zero_grad();
        code(1);
        for (const auto& micro : split(tokens, in_micro_batch)) (mean(matmul(micro, w)) / n).backward();

        const std::string part = n == 2 ? "half" : n == 3 ? "third" : "sixth";
        if (n == 1)
            step("One micro-batch has all 16 words: each counts 1/16, as it should.");
        else
            predict("A word of a micro-batch that has few words counts",
                    {right("too much"),
                     wrong("as it should", say("Each mean counts 1/{}, of few words or of many.", n)),
                     wrong("too little", "Fewer words share the same " + part + "."),
                     wrong("not at all", say("Every word is in one of the {} means.", to_text(n)))},
                    hint("How many words share a " + part + "?",
                         say("{} words in the {} micro-batches.", counted_words(1, "and"), to_text(n))),
                    say("A word counts {}, not 1/16.", counted_words(n, "or")));
        const std::vector<real> of_means = w.grad().to_vector();
        const std::vector<real> truth = gradient_of(mean(matmul(tokens, w)), w);
        show("words in the micro-batches", in_micro_batch);
        show("all 16 words", truth);
        show("mean of means", of_means);
        check_words(truth, of_means);

        step("Weights: words / all words. A window takes sums and counts, and divides once.");
        const auto v = zeros(3);
        const std::vector<real> by_window = gradient_by_window(v, [&](Window<real>& window) {
            for (const auto& micro : split(tokens, in_micro_batch)) {
                if (window.micro_batches() == 0) code(1);
                window.add(Loss(matmul(micro, v)));
            }
        });
        w.zero_grad();
        for (const auto& micro : split(tokens, in_micro_batch))
            (mean(matmul(micro, w)) * (double(micro.shape()[0]) / double(tokens.shape()[0]))).backward();
        show("a window", by_window);
        show("means times words / 16", w.grad());
        check_weighed(by_window);
        graph("mean-sum-token", "One token and three: each micro-batch's sum, divided by the four of both",
              [](Picture& p) {
                  const auto own = parameter(Array<real>({2}, {1, -1}, options().device));
                  const Tensor four = Array<real>({4, 2}, {1, 0, 0, 1, 1, 1, 2, 0}, options().device);
                  p.name(own, "w");
                  for (const auto& micro : split(four, Counts{1, 3})) {
                      auto loss = sum(matmul(micro, own)) / 4;
                      p.name(micro, micro.shape()[0] == 1 ? "1 token" : "3 tokens")
                          .name(loss, "sum / 4")
                          .backward(loss);
                  }
              });
        note("A well-known trainer divided by N until October 2024: a mean of means.");

        predict("10 words and 100. In the mean of means, one of the ten counts as much as how many others?",
                {right(10), wrong(1, "So it is in one batch of 110."),
                 wrong(100, "So many others there are. Each of these has 1/100 of a half."),
                 wrong(0.1, "The other way round: fewer share the half."),
                 wrong(90, "Weights are compared by a ratio, not by a difference.")},
                hint("What is one word's part of its mean, and what does that mean count?",
                     "Each mean counts a half; divide it among its words."),
                "1/10 of a half, against 1/100 of a half.");
        const auto each = zeros(110);  // a number for each word
        for (const auto& micro : split(each, Counts{10, 100})) (mean(micro) / 2).backward();
        const std::vector<real> shares = each.grad().to_vector();
        const auto own = zeros(110);
        const std::vector<real> fair = gradient_by_window(own, [&](Window<real>& window) {
            for (const auto& micro : split(own, Counts{10, 100})) window.add(Loss(micro));
        });
        auto counts = table({"a word counts", "of the 10", "of the 100", "ratio"});
        counts.row("mean of means", shares[0], shares[109], shares[0] / shares[109]);
        counts.row("window", fair[0], fair[109], fair[0] / fair[109]);
        check_counts(shares, fair);

        step("In the second of two micro-batches every word is masked: sum 0, count 0.");
        const Tensor no_word = Array<real>({6}, {0, 0, 0, 0, 0, 0}, options().device);
        const auto masked = [&](const Tensor& mask, const Tensor& of) {
            return Loss<Array<real>>{sum(matmul(x, of) * mask), sum(mask)};
        };
        const Tensor every_word = Array<real>::full({6}, real(1), options().device);
        w.zero_grad();
        code(2);
        masked(every_word, w).mean().backward();
        masked(no_word, w).mean().backward();

        predict("The mean of the second sends back",
                {right("nan"), wrong("0", "The mask is 0. But it is multiplied by 1 over the count."),
                 wrong("inf", "1 / 0 alone would be. It is multiplied by the mask."),
                 wrong("nothing", "The division is an operation, and sends back what its slope is.")},
                hint("What is 0 / 0, and does the chain rule go through a division?",
                     "Write the slope of sum / count, with its two zeros."),
                "The mask times 1 / 0. It spoils what was there.");
        show("w.grad", w.grad());
        const auto u = zeros(3);
        const std::vector<real> with = gradient_by_window(u, [&](Window<real>& window) {
            window.add(masked(every_word, u));
            window.add(masked(no_word, u));
        });
        show("a window", with);
        check_masked(with);

        step(say("A penalty 0.1 |w|^2 / 2, added to {}:",
                 n == 1 ? "the only micro-loss" : "each of " + to_text(n) + " micro-losses, undivided"));
        w.zero_grad();
        code(1);
        for (const auto& micro : split(x, b)) (mean(matmul(micro, w)) + penalty(w)).backward();

        if (n == 1)
            step("It is added once, and counts once.");
        else
            predict(
                "The penalty counts",
                {right(n).within(0.005),
                 wrong(1, say("It is added {}. Is it smaller in a smaller micro-batch?", times(n))),
                 wrong(1.0 / n, "That would need a division that nobody has made."),
                 wrong(6, "It is added to each micro-loss, not to each row.")},
                hint("Is a penalty on w smaller in a smaller micro-batch?", "Count where it is added."),
                say("It is the same in each micro-loss, so it is added {} times. Divided by N it is right.",
                    n));
        auto penalised = table({"where the penalty is added", "it counts"});
        const auto count_it = [&](const std::string& where, const std::vector<real>& without,
                                  const std::vector<real>& with_it) {
            penalised.row(where, (double(with_it[0]) - double(without[0])) / (0.1 * 0.5));
        };
        count_it("to each micro-loss", left_to_add(1, 0), left_to_add(1, 1));
        count_it(say("to each micro-loss, divided by N = {}", n), left_to_add(n, 0), left_to_add(n, 1));
        count_it("to each sum of a window, divided by 6", in_window(0, 0), in_window(1, 0));
        count_it("window.add_regularizer(penalty)", in_window(0, 0), in_window(0, 1));
        check_penalty(penalised);
    }

    using Counts = std::vector<std::int64_t>;
    inline static const Counts words{1, 2, 3, 1, 4, 5};  // words of six sentences

    static std::vector<real> gradient_of(const Tensor& loss, const Tensor& of) {
        return grad(loss, {of}).front().to_vector();
    }

    // Returns the gradient of an update. SGD with the learning rate 1 subtracts exactly this gradient from v,
    // and the subtraction does not round if v is 0.
    template <class Fill> static std::vector<real> gradient_by_window(const Tensor& v, Fill fill) {
        std::vector<real> gradient = v.value().to_vector();
        Sgd sgd({v}, {.learning_rate = 1});
        Window window(sgd);
        fill(window);
        window.finish();
        const std::vector<real> after = v.value().to_vector();
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= after[i];
        return gradient;
    }

    static Tensor penalty(const Tensor& of) { return sum(of * of) * 0.05; }

    // Adds a penalty to each micro-batch's loss, divides the result by `divisor`, and returns the gradient.
    std::vector<real> left_to_add(double divisor, double penalties) const {
        w.zero_grad();
        for (const auto& micro : split(x, b))
            ((mean(matmul(micro, w)) + penalty(w) * penalties) / divisor).backward();
        return w.grad().to_vector();
    }

    // Adds a penalty to each micro-batch's sum, or once to the whole update, and returns the gradient.
    std::vector<real> in_window(double in_each, double once) const {
        const auto p = weights();
        return gradient_by_window(p, [&](Window<real>& window) {
            for (const auto& micro : split(x, b)) {
                const auto loss = Loss(matmul(micro, p));
                window.add({loss.sum + penalty(p) * in_each, loss.count});
            }
            if (once > 0) window.add_regularizer(penalty(p));
        });
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    Counts words_in_each() const {
        Counts all(std::size_t(n), 0);
        for (std::size_t sentence = 0; sentence < words.size(); ++sentence)
            all[sentence / std::size_t(b)] += words[sentence];
        return all;
    }

    // Returns numbers of words such as "3, 4 and 9", or weights of words such as "1/9 or 1/12".
    std::string counted_words(int means, std::string_view last) const {
        std::vector<std::string> all;
        for (const std::int64_t in_it : words_in_each())
            all.push_back((means > 1 ? "1/" : "") + std::to_string(means * in_it));
        return list_of(all, last);
    }

    // Returns one row for each word. All words of a sentence have the same row of x.
    Tensor rows_of_words() const {
        std::vector<std::int32_t> row_of_word;
        for (std::size_t sentence = 0; sentence < words.size(); ++sentence)
            row_of_word.insert(row_of_word.end(), std::size_t(words[sentence]), std::int32_t(sentence));
        return rows(x, Array<std::int32_t>({std::int64_t(row_of_word.size())}, row_of_word)).detach();
    }

    static Tensor zeros(std::int64_t size) { return parameter(Array<real>::zeros({size}, options().device)); }

    // ---- independent checks ---------------------------------------------------------------------------------

    void check_sums(const std::vector<real>& whole, const std::vector<real>& twice) const {
        check_equal("bit for bit", w.grad(), whole);
        const double bound = roundings(14) * 2 * largest_column();  // at most the six rows, each added twice
        check_close("sums", whole, {-2.1216, 0.1240, -3.6750}, bound);
        check_close("twice", twice, {2 * -2.1216, 2 * 0.1240, 2 * -3.6750}, bound);
    }

    // Returns the exact sum over all words, in units of 1/10000. A word adds the row of its sentence.
    std::int64_t units(std::size_t micro_batch, std::size_t column) const {
        std::int64_t sum = 0;
        const auto size = std::size_t(b);
        for (std::size_t sentence = size * micro_batch; sentence < size * (micro_batch + 1); ++sentence)
            sum += words[sentence] * std::llround(values(x)[3 * sentence + column] * 10000);
        return sum;
    }
    static std::int64_t all_words() { return std::accumulate(words.begin(), words.end(), std::int64_t{0}); }
    std::vector<double> exact_words() const {
        std::vector<double> exact(3);
        for (std::size_t j = 0; j < 3; ++j)
            for (std::size_t k = 0; k < std::size_t(n); ++k)
                exact[j] += double(units(k, j)) / (10000.0 * double(all_words()));
        return exact;
    }
    const double word_bound = roundings(22) * 1.5;  // no number of the toy exceeds 1.5

    void check_words(const std::vector<real>& truth, const std::vector<real>& of_means) const {
        std::vector<double> exact_means(3);
        for (std::size_t j = 0; j < 3; ++j)
            for (std::size_t k = 0; k < std::size_t(n); ++k)
                exact_means[j] += double(units(k, j)) / (10000.0 * n * double(words_in_each()[k]));
        check_close("all words", truth, exact_words(), word_bound);
        check_close("means", of_means, exact_means, word_bound);
        check("prints [-0.4677  0.1794 -0.9453]", row_text(Numbers(truth), 4) == "-0.4677  0.1794 -0.9453");
        if (!settings_changed())
            check("prints [-0.3408  0.2093 -0.8495]",
                  row_text(Numbers(of_means), 4) == "-0.3408  0.2093 -0.8495");
    }

    static void check_counts(const std::vector<real>& shares, const std::vector<real>& fair) {
        check_close("1/20 and 1/200", {shares[0], shares[9], shares[10], shares[109]},
                    {1.0 / 20, 1.0 / 20, 1.0 / 200, 1.0 / 200}, roundings(3) / 20);
        check_close("ratio 10", shares[0] / shares[109], 10.0, roundings(7) * 10);
        check_close("fair", fair, std::vector<double>(110, 1.0 / 110), roundings(3) / 110);
    }

    void check_masked(const std::vector<real>& by_window) const {
        bool all_nan = true;
        for (const real component : w.grad().to_vector()) all_nan = all_nan && std::isnan(component);
        check("mean of nothing: nan", all_nan);
        check_close("window", by_window, {-2.1216 / 6, 0.1240 / 6, -3.6750 / 6},
                    roundings(10) * largest_column() / 6);
        const Array<std::int32_t> ignored({6}, std::vector<std::int32_t>(6, -100), options().device);
        const auto nothing = cross_entropy(x, ignored);
        check_equal("cross_entropy of ignored labels: sum 0, count 0",
                    {nothing.sum.item(), nothing.count.item()}, {0.0, 0.0});
    }

    void check_penalty(const Table& penalised) const {
        // Both gradients have at most 12 roundings and are at most 0.77 n. The table divides them by 0.05.
        check_close(say("{}, 1, {}/6, 1", n, n), penalised.column("it counts"), {1.0 * n, 1.0, n / 6.0, 1.0},
                    2 * roundings(12) * 0.77 * n / 0.05);
        check_close("once", in_window(0, 1), {-2.1216 / 6 + 0.05, 0.1240 / 6 - 0.125, -3.6750 / 6 + 0.075},
                    roundings(12) * 2.3);
    }

    void check_weighed(const std::vector<real>& by_window) const {
        check_close("window", by_window, exact_words(), word_bound);
        check_close("words / all words", w.grad(), exact_words(), word_bound);
    }
};

const RegisterLesson<MeanSumToken> lesson({.number = 12,
                                           .slug = "mean-sum-token",
                                           .title = "mean, sum, token",
                                           .minutes = 20,
                                           .steps = 10,
                                           .parameters = {equal_micro_batches()}});

}  // namespace
