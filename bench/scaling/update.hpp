// Simulates one update of data-parallel training, with micro-batches on each device and one all-reduce.
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

// Returns how many updates with batches of `batch` items training to a target needs, divided by the number of
// updates with unlimited batches (McCandlish et al. 2018).
double updates_to_target(double batch, double critical_batch);

// Returns the training time in seconds, divided by the number of updates that training with unlimited batches
// needs. Each device has micro-batches of `items` items.
double seconds_to_target(const Training& training, double items, double critical_batch);

// Returns the number of devices, from 1 to `most`, for which training reaches a target first.
int fastest(Training training, double items, double critical_batch, int most);

// Returns the smallest number of tokens per device with which the backward pass hides the all-reduce. The
// model is in bfloat16, and each layer has one bucket.
struct Chip {
    double flops, bytes_per_second;
};
double tokens_to_hide_reduction(const Chip& chip, int devices);

}  // namespace tally::scaling
