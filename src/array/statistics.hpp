// Stores the mean and variance of each feature for batch norm, of one batch or as running averages.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "tally/array/array.hpp"
#include "tally/base/error.hpp"
#include "tally/base/text.hpp"
#include "tally/kernels/functors.hpp"

namespace tally {

namespace detail {
// Returns the extents of x (items, features, ...). `space` is the number of values per item and feature.
// Throws Error unless `gain` and `bias` have one number per feature. `names` is how the message calls these two
// arrays: evaluation checks its running mean and variance, too.
BatchNormDims plan_batch_norm(const Shape& x, const Shape& gain, const Shape& bias,
                              const char* names = "gain and bias");

template <class S> Array<S> times(double factor, const Array<S>& x) {
    return map(functor::MulNumber{factor}, x);
}

template <class S>
void require_features(const Shape& features, const Array<S>& mean, const Array<S>& variance) {
    if (mean.shape() != features || variance.shape() != features)
        throw Error("batch_norm", "statistics of shape ", features, " cannot be combined with a mean of ",
                    mean.shape(), " and a variance of ", variance.shape());
}

// A BatchStatistics stores the mean and the biased variance of `count` values for each feature.
template <class S> struct BatchStatistics {
    Array<S> mean, variance;
    double count = 0;

    // Returns the statistics of two batches together. The variance includes the difference of both means.
    BatchStatistics pooled_with(const BatchStatistics& other) const {
        if (count == 0) return other;
        if (other.count == 0) return *this;
        const double all = count + other.count;
        require_features(mean.shape(), other.mean, other.variance);
        const double share = count / all, others_share = other.count / all;
        const functor::Add add;
        const auto mixed = [&](const Array<S>& here, const Array<S>& there) {
            return zip(add, times(share, here), times(others_share, there));
        };
        const Array<S> between = zip(functor::SquaredDifference{}, mean, other.mean);
        return {mixed(mean, other.mean),
                zip(add, mixed(variance, other.variance), times(share * others_share, between)), all};
    }
};
}  // namespace detail

// A RunningStatistics stores the mean and variance that evaluation uses. Call commit() once in each update.
template <class S> struct RunningStatistics {
    using Batch = detail::BatchStatistics<S>;

    Array<S> mean, variance;

    explicit RunningStatistics(std::int64_t features, Device device = Device::cpu)
        : mean(Array<S>::zeros({features}, device)), variance(Array<S>::full({features}, S(1), device)) {}

    // Sets running = (1 - momentum) * running + momentum * batch, with the unbiased variance of the batch.
    void commit(const Batch& batch, double momentum = 0.1) {
        detail::require_features(mean.shape(), batch.mean, batch.variance);
        if (!detail::has_memory(mean) || !detail::has_memory(variance))
            detail::fail_without_memory("batch_norm");
        if (batch.count < 2)
            throw Error("batch_norm", "the batch has ", static_cast<std::int64_t>(batch.count),
                        " values per feature; a variance needs at least 2");
        if (!(momentum >= 0 && momentum <= 1))
            throw Error("[batch_norm] the momentum must be between 0 and 1; it is " +
                        detail::to_text(momentum));
        const auto averaged = [&](const Array<S>& running, double factor, const Array<S>& value) {
            return zip(functor::Add{}, detail::times(1 - momentum, running), detail::times(factor, value));
        };
        Array<S> next_mean = averaged(mean, momentum, batch.mean);  // an error changes neither
        variance = averaged(variance, momentum * (batch.count / (batch.count - 1)), batch.variance);
        mean = std::move(next_mean);
    }
};

}  // namespace tally
