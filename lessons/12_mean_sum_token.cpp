// Lesson 12: a sum needs no division, and a mean over tokens is divided by the tokens of the whole window.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tally/lesson/lesson.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

using Counts = std::vector<std::int64_t>;

template <class S> Var<Array<S>> toy() {
    return Array<S>({6, 3},
                    {0.375, -1.25, 0.5,           //
                     -1.125, 0.5, -0.875,         //
                     0.625, 1.0, -1.5,            //
                     -0.25, -0.375, 0.25,         //
                     -1.5, 0.75, -0.625,          //
                     -0.2466, -0.5010, -1.4250},  //
                    options().device);
}

template <class S> Var<Array<S>> weights() {
    return parameter(Array<S>({3}, {0.5, -1.25, 0.75}, options().device));
}

// A window's gradient: what one step of length 1 takes off v. (From v = 0, where the slope of a linear loss
// is the one it has everywhere, not a bit is lost.)
template <class S, class Fill> std::vector<S> gradient_by_window(const Var<Array<S>>& v, Fill fill) {
    std::vector<S> gradient = v.value().to_vector();
    Sgd<S> sgd({v}, {.learning_rate = 1});
    Window<S> window(sgd);
    fill(window);
    window.finish();
    const std::vector<S> after = v.value().to_vector();
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= after[i];
    return gradient;
}
template <class S> Var<Array<S>> zeros(std::int64_t size) {
    return parameter(Array<S>::zeros({size}, options().device));
}

// The magnitudes of a column add up to this, in the largest.
template <class S> double largest_column(const Var<Array<S>>& x) {
    const std::vector<S> numbers = x.value().to_vector();
    double columns[3] = {};
    for (std::size_t i = 0; i < numbers.size(); ++i) columns[i % 3] += std::abs(double(numbers[i]));
    return *std::max_element(columns, columns + 3);
}

template <class S> Picture drawn() {
    Watch watch;
    const auto w = parameter(Array<S>({2}, {1, -1}, options().device));
    const Var<Array<S>> tokens = Array<S>({4, 2}, {1, 0, 0, 1, 1, 1, 2, 0}, options().device);
    Picture picture("One token and three: each micro-batch's sum, divided by the four of both");
    picture.name(w, "w");
    for (const auto& micro : split(tokens, Counts{1, 3})) {
        auto loss = sum(matmul(micro, w)) / 4;
        picture.name(micro, std::to_string(micro.shape()[0]) + (micro.shape()[0] == 1 ? " token" : " tokens"))
            .name(loss, "sum / 4");
        picture.backward(loss);
    }
    return picture;
}

template <class S> void mean_sum_token() {
    const auto x = toy<S>(), w = weights<S>();
    const auto gradient_of = [](const Var<Array<S>>& loss, const Var<Array<S>>& of) {
        return grad(loss, {of}).front().to_vector();
    };

    predict("The loss is a sum now, not a mean. Three micro-batches of two: divide each by",
            {"2", "3", "6", "nothing"}, answer(4), "What does a row weigh in a sum, wherever it stands?",
            "A row weighs 1 in every batch.");
    for (const auto& micro : split(x, 2)) {
        if (!w.has_grad()) code(1);
        sum(matmul(micro, w)).backward();
    }
    const std::vector<S> whole = gradient_of(sum(matmul(x, w)), w);
    const std::vector<S> twice = gradient_of(sum(matmul(concat<S>({x, x}), w)), w);
    show("three micro-batches", w.grad());
    show("six rows at once", whole);
    show("the six rows twice", twice);
    check_equal("bit for bit", w.grad(), whole);
    // At most 12 rows: the six, twice.
    const double sum_bound = gamma_bound<S>(14) * 2 * largest_column(x);
    check_close("sums", whole, {-2.1216, 0.1240, -3.6750}, sum_bound);
    check_close("twice", twice, {2 * -2.1216, 2 * 0.1240, 2 * -3.6750}, sum_bound);
    note("A sum grows with the batch, and the step with it: retune the rate.");

    predict("Six sentences of 1 2 3 1 4 5 words; two at a time, each mean / 3. A word of a short one counts",
            {"as much as others", "too much", "too little"}, answer(2),
            "3, 4 and 9 words, and each mean counts 1/3.", "A word counts 1/9, 1/12 or 1/27, not 1/16.");
    const Counts words{1, 2, 3, 1, 4, 5};
    std::vector<std::int32_t> row_of_word;
    Counts in_micro_batch(3);
    for (std::size_t sentence = 0; sentence < words.size(); ++sentence) {
        in_micro_batch[sentence / 2] += words[sentence];
        row_of_word.insert(row_of_word.end(), std::size_t(words[sentence]), std::int32_t(sentence));
    }
    const auto all = std::int64_t(row_of_word.size());
    const Var<Array<S>> tokens = detach(rows(x, Array<std::int32_t>({all}, row_of_word)));
    w.zero_grad();
    for (const auto& micro : split(tokens, in_micro_batch)) (mean(matmul(micro, w)) / 3).backward();
    const std::vector<S> of_means = w.grad().to_vector();
    const std::vector<S> truth = gradient_of(mean(matmul(tokens, w)), w);
    show("words in the micro-batches", in_micro_batch);
    show("all 16 words", truth);
    show("mean of means", of_means);
    // In units of 1/10000, exactly: a row's whole number counts once for each of its words.
    const std::vector<S> numbers = x.value().to_vector();
    std::vector<double> exact(3), exact_means(3);
    for (std::size_t j = 0; j < 3; ++j)
        for (std::size_t k = 0; k < 3; ++k) {
            std::int64_t units = 0;
            for (const std::size_t sentence : {2 * k, 2 * k + 1})
                units += words[sentence] * std::llround(double(numbers[3 * sentence + j]) * 10000);
            exact[j] += double(units) / (10000.0 * double(all));
            exact_means[j] += double(units) / (30000.0 * double(in_micro_batch[k]));
        }
    const double bound = gamma_bound<S>(22) * 1.5;  // no number of the toy is larger than 1.5
    check_close("all words", truth, exact, bound);
    check_close("means", of_means, exact_means, bound);
    check("prints [-0.4677  0.1794 -0.9453]", row_text(Numbers(truth), 4) == "-0.4677  0.1794 -0.9453");
    check("prints [-0.3408  0.2093 -0.8495]", row_text(Numbers(of_means), 4) == "-0.3408  0.2093 -0.8495");

    step("The weights n_k / n: a window takes sums and counts, and divides once.");
    const auto v = zeros<S>(3);
    const std::vector<S> by_window = gradient_by_window<S>(v, [&](Window<S>& window) {
        for (const auto& micro : split(tokens, in_micro_batch)) {
            if (window.micro_batches() == 0) code(1);
            window.add(counted(matmul(micro, v)));
        }
    });
    w.zero_grad();
    for (const auto& micro : split(tokens, in_micro_batch))
        (mean(matmul(micro, w)) * (double(micro.shape()[0]) / double(all))).backward();
    show("a window", by_window);
    show("means times n_k / 16", w.grad());
    check_close("window", by_window, exact, bound);
    check_close("n_k / n", w.grad(), exact, bound);
    const Picture picture = drawn<S>();
    graph("mean-sum-token", picture.svg(), picture.dot());
    note("A well-known trainer divided by N until October 2024: a mean of means.");

    predict("10 words and 100. In the mean of means, one of the ten counts",
            {"as much as the others", "10 times as much", "100 times"}, answer(2),
            "1/10 of a half, against 1/100 of a half.");
    const auto each = zeros<S>(110);  // a word's own number
    for (const auto& micro : split(each, Counts{10, 100})) (mean(micro) / 2).backward();
    const std::vector<S> shares = each.grad().to_vector();
    const auto own = zeros<S>(110);
    const std::vector<S> fair = gradient_by_window<S>(own, [&](Window<S>& window) {
        for (const auto& micro : split(own, Counts{10, 100})) window.add(counted(micro));
    });
    auto counts = table({"a word counts", "of the 10", "of the 100", "ratio"});
    counts.row("mean of means", shares[0], shares[109], shares[0] / shares[109]);
    counts.row("window", fair[0], fair[109], fair[0] / fair[109]);
    check_close("1/20 and 1/200", {shares[0], shares[9], shares[10], shares[109]},
                {1.0 / 20, 1.0 / 20, 1.0 / 200, 1.0 / 200}, gamma_bound<S>(3) / 20);
    check_close("ratio 10", shares[0] / shares[109], 10.0, gamma_bound<S>(7) * 10);
    check_close("fair", fair, std::vector<double>(110, 1.0 / 110), gamma_bound<S>(3) / 110);

    predict("Every word of a micro-batch is masked: sum 0, count 0. Its mean sends back",
            {"0", "nan", "nothing"}, answer(2), "0 / 0, and the chain rule goes through the division.",
            "The mask times 1 / 0. It spoils what was there.");
    const Var<Array<S>> no_word = Array<S>({6}, {0, 0, 0, 0, 0, 0}, options().device);
    const auto masked = [&x](const Var<Array<S>>& mask, const Var<Array<S>>& of) {
        return Loss<Array<S>>{sum(matmul(x, of) * mask), sum(mask)};
    };
    const Var<Array<S>> every_word = Array<S>::full({6}, S(1), options().device);
    w.zero_grad();
    code(2);
    masked(every_word, w).mean().backward();
    masked(no_word, w).mean().backward();
    show("w.grad", w.grad());
    const auto u = zeros<S>(3);
    const std::vector<S> with = gradient_by_window<S>(u, [&](Window<S>& window) {
        window.add(masked(every_word, u));
        window.add(masked(no_word, u));
    });
    show("a window", with);
    bool all_nan = true;
    for (const S component : w.grad().to_vector()) all_nan = all_nan && std::isnan(component);
    check("mean of nothing: nan", all_nan);
    check_close("window", with, {-2.1216 / 6, 0.1240 / 6, -3.6750 / 6},
                gamma_bound<S>(10) * largest_column(x) / 6);
    const Array<std::int32_t> ignored({6}, std::vector<std::int32_t>(6, -100), options().device);
    const auto nothing = cross_entropy(x, ignored);
    check_equal("cross_entropy of ignored labels: sum 0, count 0", {nothing.sum.item(), nothing.count.item()},
                {0.0, 0.0});

    predict("A penalty 0.1 |w|^2 / 2 is added to each of three micro-losses, undivided. It counts",
            {"once", "3 times", "1/3 times"}, answer(2), "Is it smaller in a smaller micro-batch?",
            "It is the same in each. Divided by N it is right.");
    const auto penalty = [](const Var<Array<S>>& of) { return sum(of * of) * 0.05; };
    const auto left_to_add = [&](double divisor, double penalties) {
        w.zero_grad();
        for (const auto& micro : split(x, 2))
            ((mean(matmul(micro, w)) + penalty(w) * penalties) / divisor).backward();
        return w.grad().to_vector();
    };
    const auto in_window = [&](double in_each, double once) {
        const auto p = weights<S>();
        return gradient_by_window<S>(p, [&](Window<S>& window) {
            for (const auto& micro : split(x, 2)) {
                const auto loss = counted(matmul(micro, p));
                window.add({loss.sum + penalty(p) * in_each, loss.count});
            }
            if (once > 0) window.once(penalty(p));
        });
    };
    auto penalised = table({"where the penalty is added", "it counts"});
    std::vector<double> times;
    const auto count_it = [&](const char* where, const std::vector<S>& without,
                              const std::vector<S>& with_it) {
        times.push_back((double(with_it[0]) - double(without[0])) / (0.1 * 0.5));
        penalised.row(where, times.back());
    };
    count_it("to each micro-loss", left_to_add(1, 0), left_to_add(1, 1));
    count_it("to each micro-loss, divided by N = 3", left_to_add(3, 0), left_to_add(3, 1));
    count_it("to each sum of a window, divided by 6", in_window(0, 0), in_window(1, 0));
    count_it("window.once(penalty)", in_window(0, 0), in_window(0, 1));
    // Two gradients of at most 12 roundings, of numbers that add up to at most 2.3; over 0.05.
    check_close("3, 1, 3/6, 1", times, {3.0, 1.0, 0.5, 1.0}, 2 * gamma_bound<S>(12) * 2.3 / 0.05);
    check_close("once", in_window(0, 1), {-2.1216 / 6 + 0.05, 0.1240 / 6 - 0.125, -3.6750 / 6 + 0.075},
                gamma_bound<S>(12) * 2.3);
}

int main(int argc, char** argv) {
    return run(
        argc, argv,
        {.number = 12, .slug = "mean-sum-token", .title = "mean, sum, token", .minutes = 20, .steps = 6},
        mean_sum_token<float>, mean_sum_token<double>);
}
