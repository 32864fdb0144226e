// Repair five functions. Each one contains one bug that real training programs had.
//
// The comment above a function states what the function must return. The check judges each function separately, so you
// can repair them one by one.
#include "given.hpp"

// Returns the loss for the log: the mean loss over all N micro-batches of a window. Each of the N micro-losses has
// already been divided by N.
double loss_in_the_log(const Numbers& micro_losses) {
    return std::accumulate(micro_losses.begin(), micro_losses.end(), 0.0) /
           static_cast<double>(micro_losses.size());
}

// Returns the number of updates in an epoch of `micros` micro-batches. An update uses `micro_batches` of them, and the
// micro-batches that are left at the end make one more update.
int updates_of(int micros, int micro_batches) { return micros / micro_batches; }

// Returns the mean loss over all tokens. Each micro-batch has a sum of losses and a number of tokens.
double token_mean(const Numbers& sums, const std::vector<int>& tokens) {
    double mean = 0;
    for (std::size_t k = 0; k < sums.size(); ++k) mean += sums[k] / tokens[k];
    return mean / static_cast<double>(sums.size());
}

// Returns the learning rate for micro-batch number `micro`, counted from 0. The rate is multiplied by `decay` after
// each update, and an update uses `micro_batches` micro-batches.
double rate_at(int micro, int micro_batches, double first, double decay) {
    return first * std::pow(decay, micro);
}

// Returns the clipped gradient. If the norm of the gradient is larger than max_norm, all numbers are multiplied by the
// factor that makes the norm equal to max_norm.
Numbers clipped(const Numbers& gradient, double max_norm) {
    Numbers result = gradient;
    for (double& g : result) g = std::clamp(g, -max_norm, max_norm);
    return result;
}
