// Random items whose gradient and noise are known.
#pragma once

#include "course/kit/window_gradient.hpp"

namespace {
// An item x is 1000 random numbers with the mean 0 and the variance 1. The item's loss is |w - x|^2 / 2.
constexpr int numbers_of_item = 1000;

// Returns weights whose gradient over all items, G = w, has the square |G|^2 = 1000 / noise_scale.
inline Tensor weights_for(int noise_scale) {
    const real each = 1 / std::sqrt(real(noise_scale));
    return parameter(Array<real>::full({numbers_of_item}, each, options().device));
}

// Draws the mean of `count` items, which has the variance 1 / count. Each pair of count and draw has its own random
// numbers.
inline Tensor mean_of_items(double count, int draw) {
    const auto stream = static_cast<std::uint64_t>(draw) << 32 | static_cast<std::uint64_t>(count * 8);
    const Tensor mean =
        randn<real>({numbers_of_item}, 0, 1 / std::sqrt(count), {.seed = options().seed, .stream = stream});
    return mean.value().to(options().device);
}

// Returns |g|^2, summed in double.
inline double square_of(const Numbers& g) {
    double sum = 0;
    for (const double each : g.values) sum += each * each;
    return sum;
}

// Returns the relative standard deviation of the mean of 100 estimates of |G|^2 from n micro-batches each
// (docs/mathematics.md, 8.5). `ratio` is the noise scale divided by the items of a window.
inline double likely_error(double ratio, int n) {
    return std::sqrt(4 * n * (ratio * ratio + ratio) / ((n - 1.0) * numbers_of_item)) / 10;
}
}  // namespace
