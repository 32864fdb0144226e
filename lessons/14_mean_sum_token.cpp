// Lesson 14: a mean over words divides the sum of all losses once, by the number of words of the update.
#include "course/kit/window_gradient.hpp"

LESSON(equal_micro_batches({2, 3, 6})) {
    const Tensor x = toy::rows(), w = toy::weights();  // six rows of three numbers, and three weights
    const int n = setting("micro"), each = 6 / n;      // micro-batches, and rows in each of them

    step("Until October 2024, a widely used trainer got wrong gradients (huggingface/transformers 34191).");
    note("We begin with a loss that is a sum over rows. Micro-batches: {}, rows in each: {}.", n, each);
    code(1);
    for (auto& micro : split(x, each)) sum(matmul(micro, w)).backward();

    ask("divide-a-sum", "n", n, "each", each);
    const Array<real> at_once = grad(sum(matmul(x, w)), {w}).front();
    show("sum over the micro-batches", w.grad(), "six rows at once", at_once);
    show("their ratio", ratios(w.grad(), at_once));
    show("the six rows twice", grad(sum(matmul(concat(std::vector{x, x}), w)), {w}).front());
    check_equal("the micro-batches give the bits of one batch", w.grad(), at_once);
    note("A sum grows with the batch, so a larger batch needs a smaller learning rate.");

    step("Each of the six rows is now a sentence. Each word of a row has the loss of the row.");
    std::vector<std::int64_t> lengths{1, 2, 3, 1, 4, 5}, words_in(std::size_t(n), 0);
    std::vector<std::int32_t> sentence_of;  // the sentence of each word: 0 1 1 2 2 2 3 ...
    for (std::size_t sentence = 0; sentence < 6; ++sentence) {
        sentence_of.insert(sentence_of.end(), std::size_t(lengths[sentence]), std::int32_t(sentence));
        words_in[sentence / std::size_t(each)] += lengths[sentence];
    }
    const Tensor words = rows(x, Array<std::int32_t>({16}, sentence_of)).detach();
    show("words in each sentence", lengths, "words in each micro-batch", words_in);
    note("We need the mean over all 16 words. This code was right for equal micro-batches:");
    w.zero_grad();
    const std::vector<Tensor> micros = split(words, words_in);
    code(1);
    for (auto& micro : micros) (mean(matmul(micro, w)) / n).backward();

    const auto fewest = *std::min_element(words_in.begin(), words_in.end());
    ask("few-words", "words", words_in, "n", n, "fewest", fewest, "product", n * fewest);
    auto weights = table({"words in the micro-batch", "weight of a word", "it should be"});
    for (const std::int64_t count : words_in) weights.row(count, 1.0 / double(n * count), 1.0 / 16);

    step("The mean of micro-batches' means has a wrong gradient, which Hugging Face's Trainer computed.");
    const Array<real> of_means = w.grad().clone(), of_words = grad(mean(matmul(words, w)), {w}).front();
    show("mean over all 16 words", of_words, "mean of the means", of_means);
    check("the mean of the means is another gradient", furthest(of_means, of_words) > 0.05);

    ask("the-right-weight", "n", n, "first", words_in.front());
    w.zero_grad();
    std::vector<double> shares;
    code(3);
    for (auto& micro : micros) {
        shares.push_back(double(micro.shape()[0]) / 16);
        (mean(matmul(micro, w)) * shares.back()).backward();
    }
    show("words / 16", shares, "means times words / 16", w.grad());
    // Each component is a sum of 16 products of at most 1.5. Its 16 words round at most 22 times.
    check_close("this is the mean over all 16 words", w.grad(), of_words, 2 * roundings(22) * 1.5);

    step("If the number of words is unknown at first, add losses, count words, and divide once at the end.");
    note("tally's class Window does this. A Loss contains the sum of the losses and the number of words.");
    const Tensor v = zeros({3});
    const auto by_window = window_gradient(v, [&](Window<real>& window) {
        code(1);
        for (auto& micro : micros) window.add(Loss(matmul(micro, v)));
    });
    show("the window's gradient", by_window);
    check_close("the window has the gradient of all 16 words", by_window, of_words, 2 * roundings(22) * 1.5);
    graph("mean-sum-token", "One token and three: each micro-batch's sum, divided by the four of both",
          [](Picture& p) {
              const auto own = parameter(Array<real>({2}, {1, -1}, options().device));
              const Tensor four = Array<real>({4, 2}, {1, 0, 0, 1, 1, 1, 2, 0}, options().device);
              p.name(own, "w");
              for (const Tensor& micro : split(four, std::vector<std::int64_t>{1, 3})) {
                  const Tensor loss = sum(matmul(micro, own)) / 4;
                  p.name(micro, micro.shape()[0] == 1 ? "1 token" : "3 tokens");
                  p.name(loss, "sum / 4").backward(loss);
              }
          });

    ask("ten-and-a-hundred");
    const Tensor word = zeros({110}), fair = zeros({110});  // one number for each word
    const std::vector<std::int64_t> ten_and_hundred{10, 100};
    for (const Tensor& micro : split(word, ten_and_hundred)) (mean(micro) / 2).backward();
    const auto by_count = window_gradient(fair, [&](Window<real>& window) {
        for (const Tensor& micro : split(fair, ten_and_hundred)) window.add(Loss(micro));
    });
    const std::vector<double> by_means = values(word.grad());
    auto words_of = table({"weight of a word", "of the 10", "of the 100", "ratio"});
    words_of.row("mean of the means", by_means[0], by_means[109], by_means[0] / by_means[109]);
    words_of.row("window", by_count[0], by_count[109], by_count[0] / by_count[109]);  // rounds 7 times
    check_close("the ratios are 10 and 1", words_of.column("ratio"), {10.0, 1.0}, roundings(7) * 10);

    step("Now a mask hides every word of the second micro-batch. Its loss has the sum 0 and the count 0.");
    const auto masked = [&](double mask, const Tensor& of) {
        const Tensor each_word = Array<real>::full({6}, real(mask), options().device);
        return Loss<Array<real>>{sum(matmul(x, of) * each_word), sum(each_word)};
    };
    w.zero_grad();
    code(2);
    masked(1, w).mean().backward();
    masked(0, w).mean().backward();

    ask("nothing-counts");
    show("w.grad", w.grad());
    const Tensor u = zeros({3});
    const auto ignored = window_gradient(u, [&](Window<real>& window) {
        for (const double mask : {1, 0}) window.add(masked(mask, u));
    });
    show("the window's gradient", ignored);  // has rounded at most 10 times
    check_close("the window ignores that micro-batch", ignored, toy::mean_of_rows, toy::bound(10));
}
