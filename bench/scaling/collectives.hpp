// All-reduce over many devices, message by message: when each device has the sum, and what was sent.
#pragma once

#include <cstdint>
#include <vector>

namespace tally::scaling {

// A message of n bytes takes latency + n * seconds_per_byte; a device sends one and receives one at a time.
struct Network {
    double latency, seconds_per_byte;

    double seconds(double bytes) const { return latency + bytes * seconds_per_byte; }
};

enum class AllReduce {
    ring,     // pieces go around, once to be added and once to be spread
    tree,     // all of it up a binomial tree, and down again
    halving,  // Rabenseifner: halves, quarters, ... exchanged, and gathered the same way back
    rank_order  // each device adds one piece of everybody's, and sends it to all: what tally's AllReduce::rank_order does
};

struct Reduced {
    std::vector<double> done;  // when each device has the sum
    std::int64_t messages = 0;
    double bytes = 0;  // sent by all devices together
};

// Each device begins at its own time.
Reduced all_reduce(AllReduce how, const std::vector<double>& begin, double bytes, const Network& network);

// The time when all begin together, as the literature gives it.
double all_reduce_seconds(AllReduce how, int devices, double bytes, const Network& network);

}  // namespace tally::scaling
