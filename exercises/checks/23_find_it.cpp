// Exercise 23, find it: the answer, the mistakes that are known, and the check.
#include "23_find_it.hpp"

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

namespace all_five {
double loss_in_the_log(const Numbers& micro_losses) {
    const double sum = std::accumulate(micro_losses.begin(), micro_losses.end(), 0.0);
    return sum / static_cast<double>(micro_losses.size());
}

int updates_of(int micros, int micro_batches) { return micros / micro_batches; }

double token_mean(const Numbers& sums, const std::vector<int>& tokens) {
    double mean = 0;
    for (std::size_t k = 0; k < sums.size(); ++k) mean += sums[k] / tokens[k];
    return mean / static_cast<double>(sums.size());
}

double rate_at(int micro, int micro_batches, double first, double decay) {
    return first * std::pow(decay, micro);
}

Numbers clipped(const Numbers& gradient, double max_norm) {
    Numbers result = gradient;
    for (double& g : result) g = std::clamp(g, -max_norm, max_norm);
    return result;
}
}  // namespace all_five

namespace log {
double loss_in_the_log(const Numbers& micro_losses) {
    const double sum = std::accumulate(micro_losses.begin(), micro_losses.end(), 0.0);
    return sum / static_cast<double>(micro_losses.size());
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
}  // namespace log

namespace tail {
double loss_in_the_log(const Numbers& micro_losses) {
    return std::accumulate(micro_losses.begin(), micro_losses.end(), 0.0);
}

int updates_of(int micros, int micro_batches) { return micros / micro_batches; }

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
}  // namespace tail

namespace tokens {
double loss_in_the_log(const Numbers& micro_losses) {
    return std::accumulate(micro_losses.begin(), micro_losses.end(), 0.0);
}

int updates_of(int micros, int micro_batches) { return (micros + micro_batches - 1) / micro_batches; }

double token_mean(const Numbers& sums, const std::vector<int>& tokens) {
    double mean = 0;
    for (std::size_t k = 0; k < sums.size(); ++k) mean += sums[k] / tokens[k];
    return mean / static_cast<double>(sums.size());
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
}  // namespace tokens

namespace schedule {
double loss_in_the_log(const Numbers& micro_losses) {
    return std::accumulate(micro_losses.begin(), micro_losses.end(), 0.0);
}

int updates_of(int micros, int micro_batches) { return (micros + micro_batches - 1) / micro_batches; }

double token_mean(const Numbers& sums, const std::vector<int>& tokens) {
    const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
    return sum / std::accumulate(tokens.begin(), tokens.end(), 0);
}

double rate_at(int micro, int micro_batches, double first, double decay) {
    return first * std::pow(decay, micro);
}

Numbers clipped(const Numbers& gradient, double max_norm) {
    double squares = 0;
    for (double g : gradient) squares += g * g;
    Numbers result = gradient;
    for (double& g : result) g *= std::min(1.0, max_norm / std::max(std::sqrt(squares), 1e-300));
    return result;
}
}  // namespace schedule

namespace clip {
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
    Numbers result = gradient;
    for (double& g : result) g = std::clamp(g, -max_norm, max_norm);
    return result;
}
}  // namespace clip

struct Functions {
    decltype(&::loss_in_the_log) loss_in_the_log;
    decltype(&::updates_of) updates_of;
    decltype(&::token_mean) token_mean;
    decltype(&::rate_at) rate_at;
    decltype(&::clipped) clipped;
};

void examine(exercise::Look& look, const Functions& yours) {
    const auto look_at = [&](const std::string& where, const std::string& what,
                             const std::function<Numbers()>& answer, const Numbers& wanted) {
        look.with(where);
        Numbers given;
        if (look.runs([&] { given = answer(); })) look.equal(what, given, wanted);
    };
    for (int draw = 0; draw < 2; ++draw) {
        const int count = draw == 0 ? 2 : look.whole(3, 5);
        const Numbers losses = draw == 0 ? Numbers{0.5, 1.5} : look.uniforms(static_cast<std::size_t>(count));
        look_at("loss_in_the_log(" + exercise::written(losses) + ")", "loss",
                [&] { return Numbers{yours.loss_in_the_log(losses)}; },
                {std::accumulate(losses.begin(), losses.end(), 0.0)});
    }
    for (const auto& [micros, size, updates] : {std::tuple{10, 4, 3}, {8, 4, 2}, {3, 4, 1}, {9, 1, 9}})
        look_at("updates_of(" + std::to_string(micros) + ", " + std::to_string(size) + ")", "number",
                [&, m = micros, n = size] { return Numbers{static_cast<double>(yours.updates_of(m, n))}; },
                {static_cast<double>(updates)});
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
    look_at("rate_at(0 to 8, 4, 1, 0.5)", "rates",
            [&] {
                Numbers rates;
                for (int micro = 0; micro <= 8; ++micro) rates.push_back(yours.rate_at(micro, 4, 1, 0.5));
                return rates;
            },
            {1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25});
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
    {.number = 23,
     .slug = "find-it",
     .title = "five bugs of real trainers, one in each function",
     .minutes = 20,
     .lesson = "once-per-update",
     .functions = {"loss_in_the_log", "updates_of", "token_mean", "rate_at", "clipped"},
     .hints = {"For each function: what does it give for two micro-batches that you make up, and what should "
               "it give?",
               "The five kinds: dividing twice; rounding down; a mean of means; counting micro-batches as "
               "updates; cutting numbers one by one.",
               "The sum alone; round up; one quotient at the end; the number of the update, micro / "
               "micro_batches; one factor for all."},
     .why = "Each of these has shipped, and each trains without an error: the loss falls, a little worse "
            "than it could. What finds them is a comparison: the same data once as one batch and once in "
            "micro-batches, in double."},
    examine,
    Functions{right::loss_in_the_log, right::updates_of, right::token_mean, right::rate_at, right::clipped},
    {{"all_five",
      {all_five::loss_in_the_log, all_five::updates_of, all_five::token_mean, all_five::rate_at,
       all_five::clipped},
      "All five bugs are still in. Take one function at a time: what does the line above it promise, and "
      "what happens in a small example?"},
     {"log",
      {log::loss_in_the_log, log::updates_of, log::token_mean, log::rate_at, log::clipped},
      "Four are found. What is left is in loss_in_the_log: each loss was divided by N already, and is "
      "divided once more. (So did trainers that showed a loss N times too small.)"},
     {"tail",
      {tail::loss_in_the_log, tail::updates_of, tail::token_mean, tail::rate_at, tail::clipped},
      "Four are found. What is left is in updates_of: the tail makes an update, too, but the division of "
      "whole numbers forgets it, and the schedule ends too early."},
     {"tokens",
      {tokens::loss_in_the_log, tokens::updates_of, tokens::token_mean, tokens::rate_at, tokens::clipped},
      "Four are found. What is left is in token_mean: a mean of means. (The bug that was found in large "
      "trainers in October 2024.)"},
     {"schedule",
      {schedule::loss_in_the_log, schedule::updates_of, schedule::token_mean, schedule::rate_at,
       schedule::clipped},
      "Four are found. What is left is in rate_at: the rate is decayed with each micro-batch instead of each "
      "update."},
     {"clip",
      {clip::loss_in_the_log, clip::updates_of, clip::token_mean, clip::rate_at, clip::clipped},
      "Four are found. What is left is in clipped: each number is cut by itself, which changes the direction "
      "of the gradient."}});

}  // namespace
