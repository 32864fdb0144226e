// Simulates an update. Devices send gradients only during the last backward pass of the update. A device
// sends a bucket as soon as the gradients in the bucket are complete.
#include "bench/scaling/update.hpp"

#include <algorithm>
#include <random>
#include <vector>

namespace tally::scaling {

Update update(const Training& training) {
    const auto devices = static_cast<std::size_t>(training.devices);
    std::mt19937_64 random(training.seed);
    std::exponential_distribution<double> late;
    std::vector<double> backward_begins(devices), backward(devices);
    for (std::size_t i = 0; i < devices; ++i) {
        double before = 0, last = 0;
        for (int k = 0; k < training.micro_batches; ++k) {
            before += last;
            last = training.micro_seconds;
            if (training.straggling > 0) last *= 1 + training.straggling * late(random);
        }
        backward[i] = last * training.backward_share;
        backward_begins[i] = before + last - backward[i];
    }
    double computed = 0;
    for (std::size_t i = 0; i < devices; ++i) computed = std::max(computed, backward_begins[i] + backward[i]);

    std::vector<double> free(devices, 0);  // time at which a device's network connection is free
    for (int k = 1; k <= training.buckets; ++k) {
        for (std::size_t i = 0; i < devices; ++i)
            free[i] = std::max(free[i], backward_begins[i] + backward[i] * k / training.buckets);
        if (devices > 1)
            free =
                all_reduce(training.how, free, training.gradient_bytes / training.buckets, training.network)
                    .done;
    }
    const double all = *std::max_element(free.begin(), free.end());
    return {all, all - computed, training.micro_batches * training.micro_seconds / all};
}

double updates_to_target(double batch, double critical_batch) { return 1 + critical_batch / batch; }

double seconds_to_target(const Training& training, double items, double critical_batch) {
    const double batch = items * training.micro_batches * training.devices;
    const double reduced =
        all_reduce_seconds(training.how, training.devices, training.gradient_bytes, training.network);
    return updates_to_target(batch, critical_batch) *
           (training.micro_batches * training.micro_seconds + (training.devices > 1 ? reduced : 0));
}

int fastest(Training training, double items, double critical_batch, int most) {
    int best = 1;
    double least = 0;
    for (training.devices = 1; training.devices <= most; ++training.devices) {
        const double seconds = seconds_to_target(training, items, critical_batch);
        if (training.devices == 1 || seconds < least) best = training.devices, least = seconds;
    }
    return best;
}

double tokens_to_hide_reduction(const Chip& chip, int devices) {
    constexpr double parameters = 1e9;
    Training training{.devices = devices,
                      .backward_share = 1,
                      .gradient_bytes = 2 * parameters,
                      .buckets = 10,
                      .network = {0, 1 / chip.bytes_per_second}};
    const double one_bucket = all_reduce_seconds(
        training.how, devices, training.gradient_bytes / training.buckets, training.network);
    double low = 0, high = 1e7;  // tokens
    while (high - low > 1e-5 * high) {
        const double tokens = (low + high) / 2;
        training.micro_seconds = 4 * parameters * tokens / chip.flops;  // time of both backward products
        // Computation cannot hide the all-reduce of the last bucket.
        (update(training).waiting > one_bucket * (1 + 1e-6) ? low : high) = tokens;
    }
    return high;
}

}  // namespace tally::scaling
