// Declares what exercise find-it provides.
#pragma once
#include "exercise.hpp"

using Numbers = std::vector<double>;

// The comments in task.cpp state what each function returns.
double loss_in_the_log(const Numbers& micro_losses);
int updates_of(int micros, int micro_batches);
double token_mean(const Numbers& sums, const std::vector<int>& tokens);
double rate_at(int micro, int micro_batches, double first, double decay);
Numbers clipped(const Numbers& gradient, double max_norm);
HAND_IN(loss_in_the_log);
HAND_IN(updates_of);
HAND_IN(token_mean);
HAND_IN(rate_at);
HAND_IN(clipped);
