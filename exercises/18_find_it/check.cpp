// The answer and the check of exercise find-it.
#include "given.hpp"

#include "check.hpp"

#include <tuple>

namespace {

namespace right {
double loss_in_the_log(const Numbers& micro_losses) {
    return std::accumulate(micro_losses.begin(), micro_losses.end(), 0.0);
}

int updates_of(int micros, int micro_batches) { return (micros + micro_batches - 1) / micro_batches; }

double token_mean(const Numbers& sums, const std::vector<int>& tokens) {
    const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
    return sum / std::accumulate(tokens.begin(), tokens.end(), 0);
}

double rate_at(int micro, int micro_batches, double first, double decay) {
    return first * std::pow(decay, micro / micro_batches);
}

Numbers clipped(const Numbers& gradient, double max_norm) {
    double squares = 0;
    for (double g : gradient) squares += g * g;
    Numbers result = gradient;
    for (double& g : result) g *= std::min(1.0, max_norm / std::max(std::sqrt(squares), 1e-300));
    return result;
}
}  // namespace right

#include "18_find_it.mistakes.hpp"

void examine(exercise::AnswerTest& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::string& what,
                             const std::function<Numbers()>& answer, const Numbers& wanted) {
        look.with(where);
        Numbers given;
        if (look.runs([&] { given = answer(); })) look.equal(what, given, wanted);
    };
    look.part("loss_in_the_log");
    for (int draw = 0; draw < 2; ++draw) {
        const int count = draw == 0 ? 2 : look.whole(3, 5);
        const Numbers losses = draw == 0 ? Numbers{0.5, 1.5} : look.uniforms(static_cast<std::size_t>(count));
        look_at("loss_in_the_log(" + exercise::written(losses) + ")", "loss",
                [&] { return Numbers{yours.loss_in_the_log(losses)}; },
                {std::accumulate(losses.begin(), losses.end(), 0.0)});
    }
    look.part("updates_of");
    for (const auto& [micros, size, updates] : {std::tuple{10, 4, 3}, {8, 4, 2}, {3, 4, 1}, {9, 1, 9}})
        look_at("updates_of(" + std::to_string(micros) + ", " + std::to_string(size) + ")", "number",
                [&, m = micros, n = size] { return Numbers{static_cast<double>(yours.updates_of(m, n))}; },
                {static_cast<double>(updates)});
    look.part("token_mean");
    look_at("token_mean([8 2], [8 1]), a sum of 10 over 9 tokens", "mean",
            [&] {
                return Numbers{yours.token_mean({8, 2}, {8, 1})};
            },
            {10.0 / 9});
    const Numbers sums = look.uniforms(3, 1, 9);
    look_at("token_mean of random sums over 2, 3 and 50 tokens", "mean",
            [&] {
                return Numbers{yours.token_mean(sums, {2, 3, 50})};
            },
            {(sums[0] + sums[1] + sums[2]) / 55});
    look.part("rate_at");
    look_at("rate_at(0 to 8, 4, 1, 0.5)", "rates",
            [&] {
                Numbers rates;
                for (int micro = 0; micro <= 8; ++micro) rates.push_back(yours.rate_at(micro, 4, 1, 0.5));
                return rates;
            },
            {1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25});
    look.part("clipped");
    look_at("clipped([3 4], 1)", "gradient", [&] { return yours.clipped({3, 4}, 1); }, {0.6, 0.8});
    look_at("clipped([0.3 0.4], 1), which is short enough", "gradient",
            [&] {
                return yours.clipped({0.3, 0.4}, 1);
            },
            {0.3, 0.4});
    look_at("clipped([0.9 0.9], 1)", "gradient",
            [&] {
                return yours.clipped({0.9, 0.9}, 1);
            },
            {std::sqrt(0.5), std::sqrt(0.5)});
}

const exercise::Add add(
    {.title = "five bugs of real trainers, one in each function",
     .minutes = 20,
     .lesson = "once-per-update",
     .hints =
         {"Which numbers should each function return for a small example of two micro-batches, and which "
          "numbers does the given function return?",
          "loss_in_the_log divides by the number of micro-batches a second time. updates_of rounds down. "
          "token_mean returns a mean of means. rate_at counts micro-batches instead of updates. The "
          "function clipped limits each number of the gradient separately.",
          "loss_in_the_log: return only the sum. updates_of: round up. token_mean: divide only once, at the "
          "end. rate_at: use the exponent micro / micro_batches, rounded down. clipped: multiply all numbers "
          "of the gradient by the same factor."},
     .why = "Real training programs had each of these bugs. None of the bugs causes an error: the loss "
            "falls, but more slowly than it could. To find them, train in double with the same data, once as "
            "one batch and once as micro-batches, and compare the results."},
    examine, answers);

}  // namespace
