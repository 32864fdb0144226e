// Find it. Five bugs of real trainers, one in each function, written as small as they can be.
#include "given.hpp"

// For the log: the mean of a window's micro-losses, each of which was divided by N already, before it went backward.
double loss_in_the_log(const Numbers& micro_losses) {
    return std::accumulate(micro_losses.begin(), micro_losses.end(), 0.0) /
           static_cast<double>(micro_losses.size());
}

// How many updates an epoch makes. The tail makes one of its own, and the schedule must know of it.
int updates_of(int micros, int micro_batches) { return micros / micro_batches; }

// The mean loss over all tokens, from each micro-batch's sum and its number of tokens.
double token_mean(const Numbers& sums, const std::vector<int>& tokens) {
    double mean = 0;
    for (std::size_t k = 0; k < sums.size(); ++k) mean += sums[k] / tokens[k];
    return mean / static_cast<double>(sums.size());
}

// The learning rate by which micro-batch number `micro` is used, from 0: it is decayed once after each UPDATE.
double rate_at(int micro, int micro_batches, double first, double decay) {
    return first * std::pow(decay, micro);
}

// The gradient, scaled down to max_norm where its norm is larger; all of it by the same factor.
Numbers clipped(const Numbers& gradient, double max_norm) {
    Numbers result = gradient;
    for (double& g : result) g = std::clamp(g, -max_norm, max_norm);
    return result;
}
