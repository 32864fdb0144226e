// Simulates one update of a data-parallel training: micro-batches on each device, then one all-reduce.
#pragma once

#include <cstdint>

#include "bench/scaling/collectives.hpp"

namespace tally::scaling {

struct Training {
    int devices = 1, micro_batches = 1;
    double micro_seconds = 1;         // forward and backward of a micro-batch
    double backward_share = 2.0 / 3;  // part of micro_seconds
    double gradient_bytes = 0;
    int buckets = 1;        // reduced sequentially while the last backward runs
    double straggling = 0;  // mean delay of a micro-batch, relative to its time; exponentially distributed
    std::uint64_t seed = 0;
    Network network{};
    AllReduce how = AllReduce::ring;
};

struct Update {
    double seconds, waiting;  // time until all devices have the sum; part of it in which no device computes
    double efficiency;        // time of an undisturbed single device, relative to the devices' time
};
Update update(const Training& training);

// Returns the number of updates to a target, relative to unlimited batches (McCandlish et al. 2018).
double updates_to_target(double batch, double critical_batch);

// Returns the time to a target with micro-batches of `items` items on each device, in units of one update.
double seconds_to_target(const Training& training, double items, double critical_batch);

// Returns the number of devices, from 1 to `most`, with the smallest time to a target.
int fastest(Training training, double items, double critical_batch, int most);

// Returns the number of tokens per device from which a training of matrices in bfloat16 hides its all-reduce
// behind the backward pass. Found by bisection, with one bucket per layer.
struct Chip {
    double flops, bytes_per_second;
};
double tokens_to_hide_reduction(const Chip& chip, int devices);

}  // namespace tally::scaling
