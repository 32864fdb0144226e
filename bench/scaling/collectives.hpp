// Simulates all-reduce over many devices, message by message.
#pragma once

#include <cstdint>
#include <vector>

namespace tally::scaling {

// A message of n bytes takes latency + n * seconds_per_byte. A device sends and receives one at a time.
struct Network {
    double latency, seconds_per_byte;

    double seconds(double bytes) const { return latency + bytes * seconds_per_byte; }
};

enum class AllReduce {
    ring,       // pieces go around a ring twice: to be added, and to be distributed
    tree,       // everything goes up a binomial tree and down again
    halving,    // Rabenseifner: exchanges halves, quarters, ..., and gathers them in reverse order
    rank_order  // as in tally: each device adds one piece of all devices and sends the sum to all
};

struct Reduced {
    std::vector<double> done;  // time at which each device has the sum
    std::int64_t messages = 0;
    double bytes = 0;  // sent by all devices together
};

// Simulates devices that begin at the times `begin`.
Reduced all_reduce(AllReduce how, const std::vector<double>& begin, double bytes, const Network& network);

// Returns the literature's formula for devices that begin at the same time.
double all_reduce_seconds(AllReduce how, int devices, double bytes, const Network& network);

}  // namespace tally::scaling
