// The answer and the check of exercise one-denominator.
#include "given.hpp"

#include "check.hpp"
#include "toy.hpp"

namespace {

namespace right {
Share hand_in(const std::vector<Tensor>& micros, const Tensor& w) {
    double rows = 0;
    for (const Tensor& micro : micros) {
        sum(matmul(micro, w)).backward();
        rows += static_cast<double>(micro.shape()[0]);
    }
    return {numbers_of_gradient(w), rows};
}
std::vector<double> gradient_of_all(const Share& sum, int ranks) {
    std::vector<double> gradient = sum.gradient;
    for (double& number : gradient) number /= sum.count;
    return gradient;
}
}  // namespace right

#include "28_one_denominator.mistakes.hpp"

// The sizes of the micro-batches of each rank.
using Dealt = std::vector<std::vector<int>>;

std::string to_text(const Dealt& dealt) {
    std::string text;
    for (const auto& sizes : dealt)
        text += (text.empty() ? "" : ", ") + (sizes.empty() ? "nothing" : exercise::sizes_in_words(sizes));
    return text;
}

// Adds up the shares of all ranks in order; each rank has its own copy of w.
Share sum_of_all(const Functions& yours, const Tensor& x, const Tensor& w, const Dealt& dealt) {
    Share sum{std::vector<double>(w.value().size()), 0};
    int from = 0;
    for (const auto& sizes : dealt) {
        const int rows = std::accumulate(sizes.begin(), sizes.end(), 0);
        std::vector<Tensor> micros;
        if (rows > 0) micros = exercise::cut(slice(x, 0, from, from + rows), sizes);
        const Share share = yours.hand_in(micros, parameter(w.value()));
        for (std::size_t i = 0; i < std::min(sum.gradient.size(), share.gradient.size()); ++i)
            sum.gradient[i] += share.gradient[i];
        sum.count += share.count;
        from += rows;
    }
    return sum;
}

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& what, const Tensor& x, const Tensor& w, const Dealt& dealt) {
        look.with(what + ", the ranks have " + to_text(dealt));
        const auto wanted = exercise::full_gradient(x, w);
        std::vector<double> found;
        if (look.runs([&] {
                found = yours.gradient_of_all(sum_of_all(yours, x, w, dealt), static_cast<int>(dealt.size()));
            }))
            look.equal("gradient", exercise::Numbers(found.begin(), found.end()), wanted);
    };
    for (const Dealt& dealt :
         {Dealt{{2}, {2}, {2}}, {{4}, {2}, {}}, {{1, 2}, {3}}, {{}, {2, 1, 1}, {1, 1}}, {{6}}})
        look_at("the six rows", exercise::toy_rows(), exercise::toy_weight(), dealt);
    for (int draw = 0; draw < 4; ++draw) {
        Dealt dealt(static_cast<std::size_t>(look.whole(2, 5)));
        int rows = 0;
        for (auto& sizes : dealt)
            for (int micro = look.whole(0, 3); micro > 0; --micro)
                rows += sizes.emplace_back(look.whole(1, 5));
        if (rows == 0) rows = dealt[0].emplace_back(1);
        const int columns = look.whole(1, 4);
        const Tensor x = exercise::random_rows(look, rows, columns);
        look_at("random numbers", x, exercise::random_weight(look, columns), dealt);
    }
}

const exercise::Add add(
    {.title = "the values that ranks submit, and the divisor of their sum",
     .minutes = 10,
     .lesson = "across-processes",
     .hints = {"A process (rank) does not know the rows of the other processes. Which two sums can a rank "
               "submit, so that the mean over all rows can be computed?",
               "In hand_in(), replace the mean, because means of different ranks cannot be added, and set "
               "`count`. In gradient_of_all(), replace the divisor.",
               "For each micro-batch, call backward on the sum of the losses of its rows, and add "
               "micro.shape()[0], its number of rows, to `count`. Divide the gradient only once, in "
               "gradient_of_all(), by the number of rows of all ranks."},
     .why = "You can add up the sums and counts of all processes, and divide once at the end. A process "
            "without rows adds zeros, and needs no special case."},
    examine, answers);

}  // namespace
