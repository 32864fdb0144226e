// Simulates the messages of an all-reduce over many devices.
#pragma once

#include <cstdint>
#include <vector>

namespace tally::scaling {

// A message of n bytes takes latency + n * seconds_per_byte. A device sends only one message at a time, and
// receives only one message at a time.
struct Network {
    double latency, seconds_per_byte;

    double seconds(double bytes) const { return latency + bytes * seconds_per_byte; }
};

enum class AllReduce {
    ring,       // pieces of the array go around a ring twice: first to be added, then to be distributed
    tree,       // the whole array goes up a binomial tree to be added, and down again
    halving,    // Rabenseifner: exchanges halves, quarters, ..., and gathers them in reverse order
    rank_order  // as in tally: device i adds piece i of all arrays, and sends the sum to all devices
};

struct Reduced {
    std::vector<double> done;  // time at which each device has the sum
    std::int64_t messages = 0;
    double bytes = 0;  // sum of the bytes that each device sends
};

// Simulates an all-reduce in which device i begins at the time begin[i].
Reduced all_reduce(AllReduce how, const std::vector<double>& begin, double bytes, const Network& network);

// Returns the time of an all-reduce by the formula in the literature, if all devices begin at the same time.
double all_reduce_seconds(AllReduce how, int devices, double bytes, const Network& network);

}  // namespace tally::scaling
