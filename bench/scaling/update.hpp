// Simulates one update of data-parallel training, which is micro-batches on each device and one all-reduce.
#pragma once

#include <cstdint>

#include "bench/scaling/collectives.hpp"

namespace tally::scaling {

struct Training {
    int devices = 1, micro_batches = 1;
    double micro_seconds = 1;         // forward and backward of a micro-batch
    double backward_share = 2.0 / 3;  // fraction of micro_seconds that backward takes
    double gradient_bytes = 0;
    int buckets = 1;        // number of parts of the gradient, which are reduced during the last backward
    double straggling = 0;  // mean of a micro-batch's exponentially distributed delay, relative to its time
    std::uint64_t seed = 0;
    Network network{};
    AllReduce how = AllReduce::ring;
};

struct Update {
    double seconds, waiting;  // time until all devices have the sum; time in which no device computes
    double efficiency;        // time of a single device without delays, relative to `seconds`
};
Update update(const Training& training);

// Returns the number of updates that training needs to reach a target, relative to the number with unlimited
// batches (McCandlish et al. 2018).
double updates_to_target(double batch, double critical_batch);

// Returns the seconds until training reaches a target, divided by the number of updates with unlimited
// batches. Each device has micro-batches of `items` items.
double seconds_to_target(const Training& training, double items, double critical_batch);

// Returns the number of devices, from 1 to `most`, for which training reaches a target first.
int fastest(Training training, double items, double critical_batch, int most);

// Returns the smallest number of tokens per device for which the backward pass takes long enough to hide the
// all-reduce of matrices in bfloat16. The search is a bisection, with one bucket per layer.
struct Chip {
    double flops, bytes_per_second;
};
double tokens_to_hide_reduction(const Chip& chip, int devices);

}  // namespace tally::scaling
