// One update of a data-parallel training: micro-batches on each device, one all-reduce of their sum.
#pragma once

#include <cstdint>

#include "bench/scaling/collectives.hpp"

namespace tally::scaling {

struct Training {
    int devices = 1, micro_batches = 1;
    double micro_seconds = 1;         // forward and backward of a micro-batch
    double backward_share = 2.0 / 3;  // of these seconds
    double gradient_bytes = 0;
    int buckets = 1;  // reduced one after the other while the last backward still runs
    double straggling =
        0;  // a micro-batch takes longer by this share of its time on average, exponentially distributed
    std::uint64_t seed = 0;
    Network network{};
    AllReduce how = AllReduce::ring;
};

struct Update {
    double seconds, waiting;  // until all have the sum; of these, what no device computes for
    double efficiency;        // of the devices' time, what an undisturbed device alone would need
};
Update update(const Training& training);

// How many updates reach a target with batches of this size, in units of those that unlimited batches need (McCandlish
// et al. 2018).
double updates_to_target(double batch, double critical_batch);

// Time to target over devices with micro-batches of `items`, in units of what one update more costs.
double seconds_to_target(const Training& training, double items, double critical_batch);

// The number of devices, from 1 to `most`, with which a target is reached soonest.
int fastest(Training training, double items, double critical_batch, int most);

// A data-parallel training of matrices in bfloat16 hides its all-reduce behind the backward pass from this many tokens
// on each device on: found by trying, with one bucket a layer.
struct Chip {
    double flops, bytes_per_second;
};
double tokens_to_hide_reduction(const Chip& chip, int devices);

}  // namespace tally::scaling
