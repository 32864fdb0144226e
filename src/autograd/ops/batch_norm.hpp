// Batch norm: every feature is shifted and scaled to mean 0 and variance 1 over the batch, then by its own
// gain and bias; and the statistics that stand in for the batch's when there is none.
#pragma once

#include <string>
#include <utility>

#include "tally/autograd/ops/shape.hpp"
#include "tally/autograd/record.hpp"
#include "tally/values/array.hpp"

namespace tally {

// Of one batch or of several: over `count` values a feature, the mean and the variance divided by the count.
template <class S> struct BatchStatistics {
    Array<S> mean, variance;
    double count = 0;
};

namespace detail {

template <class S> Array<S> times(double factor, const Array<S>& x) {
    return map(functor::MulNumber{factor}, x);
}

template <class S> void expect_features(const Shape& features, const BatchStatistics<S>& batch) {
    if (batch.mean.shape() != features || batch.variance.shape() != features)
        throw Error("[batch_norm] statistics of " + to_string(features) + " take in none of " +
                    to_string(batch.mean.shape()) + " and " + to_string(batch.variance.shape()));
}

}  // namespace detail

// Of both batches as one: between their means there is variance, too.
template <class S> BatchStatistics<S> pooled(const BatchStatistics<S>& a, const BatchStatistics<S>& b) {
    using detail::times;
    const double count = a.count + b.count;
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    detail::expect_features(a.mean.shape(), b);
    const functor::Add add;
    const auto mixed = [&](const Array<S>& of_a, const Array<S>& of_b) {
        return zip(add, times(a.count / count, of_a), times(b.count / count, of_b));
    };
    const double between = (a.count / count) * (b.count / count);
    return {mixed(a.mean, b.mean),
            zip(add, mixed(a.variance, b.variance),
                times(between, zip(functor::SquaredDifference{}, a.mean, b.mean))),
            count};
}

// What evaluation normalises by: a moving average, which takes in an update's statistics by commit(), once.
template <class S> struct RunningStatistics {
    Array<S> mean, variance;

    explicit RunningStatistics(std::int64_t features, Device device = Device::cpu)
        : mean(Array<S>::zeros({features}, device)), variance(Array<S>::full({features}, S(1), device)) {}

    // The variance is taken in as an estimate: divided by count - 1.
    void commit(const BatchStatistics<S>& batch, double momentum = 0.1) {
        detail::expect_features(mean.shape(), batch);
        if (batch.count < 2)
            throw Error("[batch_norm] " + std::to_string(static_cast<std::int64_t>(batch.count)) +
                        " values a feature tell no variance; at least 2 are needed");
        if (!(momentum >= 0 && momentum <= 1))
            throw Error("[batch_norm] the momentum must be between 0 and 1; it is " +
                        std::to_string(momentum));
        const auto take_in = [&](Array<S>& running, double factor, const Array<S>& value) {
            running = zip(functor::Add{}, detail::times(1 - momentum, running), detail::times(factor, value));
        };
        take_in(mean, momentum, batch.mean);
        take_in(variance, momentum * (batch.count / (batch.count - 1)), batch.variance);
    }
};

template <class S> struct BatchNormed {
    Var<Array<S>> y;
    BatchStatistics<S> batch;  // for RunningStatistics::commit, when the update is made
};

namespace detail {

// x (items, features, ...) as (items, features, space).
template <class S> Fold checked_features(const Var<Array<S>>& x, const Array<S>& gain, const Array<S>& bias) {
    const Shape& shape = x.shape();
    if (shape.rank() < 2)
        throw Error("[batch_norm] wants (items, features, ...); x is " + to_string(shape) + ", gain " +
                    to_string(gain.shape()));
    const Shape features{shape[1]};
    if (gain.shape() != features || bias.shape() != features)
        throw Error("[batch_norm] gain, bias and statistics of " + to_string(shape) + " must be " +
                    to_string(features) + "; they are " + to_string(gain.shape()) + " and " +
                    to_string(bias.shape()));
    return {static_cast<std::size_t>(shape[0]), features.size(), stride_of(shape, 1)};
}

template <class S> Var<Array<S>> batch_normalised(Var<Array<S>> x, Var<Array<S>> gain, Var<Array<S>> bias,
                                                  const Array<S>& mean, const Array<S>& variance, double eps,
                                                  bool own_statistics, const Fold& fold) {
    const Array<S> rstd =
        map(functor::NumberOver{1}, map(functor::Sqrt{}, map(functor::AddNumber{eps}, variance)));
    Array<S> y = empty_like(x.value());
    on("batch_norm", x.value(), gain.value(), bias.value(), mean)
        .batch_norm(x.value().data(), mean.data(), rstd.data(), gain.value().data(), bias.value().data(),
                    y.raw(), fold);
    const bool to_x = x.wants_grad(), sums = gain.wants_grad() || (own_statistics && to_x);
    return record<"batch_norm">(
        std::move(y),
        std::tuple(keep_if(sums, x.value()), keep_if(sums, mean), keep_if(sums || to_x, rstd),
                   keep_if(to_x, gain.value())),
        [fold, own_statistics](Pull<Array<S>> to, const Array<S>& dy, const Array<S>& kept_x,
                               const Array<S>& kept_mean, const Array<S>& kept_rstd,
                               const Array<S>& kept_gain) {
            const Kernels<S>& kernel = on("batch_norm", dy);
            const Shape features{static_cast<std::int64_t>(fold.reduced)};
            Array<S> total, along;
            if (to.wants(1) || (own_statistics && to.wants(0))) {
                total = Array<S>::empty(features, dy.device());
                along = Array<S>::empty(features, dy.device());
                kernel.batch_norm_back_sums(dy.data(), kept_x.data(), kept_mean.data(), kept_rstd.data(),
                                            total.raw(), along.raw(), fold);
            }
            if (to.wants(0))
                kernel.batch_norm_back(dy.data(), kept_x.data(), kept_mean.data(), kept_rstd.data(),
                                       kept_gain.data(), own_statistics ? total.data() : nullptr,
                                       along.data(), destination(to.into(0)), fold);
            if (to.wants(1)) to.give(1, along);
            if (to.wants(2)) {
                // one number a feature, read along all of dy
                const Shape whole{static_cast<std::int64_t>(fold.outer), features[0],
                                  static_cast<std::int64_t>(fold.inner)};
                kernel.scatter(broadcast_walk(whole, Shape{features[0], 1}), dy.data(),
                               destination(to.into(2)));
            }
        },
        std::move(x), std::move(gain), std::move(bias));
}

}  // namespace detail

// Those of x (items, features, ...), as batch_norm with this gain and bias takes them.
template <class S>
BatchStatistics<S> batch_statistics(const Var<Array<S>>& x, const Array<S>& gain, const Array<S>& bias) {
    const Fold fold = detail::checked_features(x, gain, bias);
    BatchStatistics<S> batch{empty_like(gain), empty_like(gain),
                             static_cast<double>(fold.outer * fold.inner)};
    on("batch_norm", x.value(), gain)
        .batch_moments(x.value().data(), batch.mean.raw(), batch.variance.raw(), fold);
    return batch;
}

// In training, x (items, features) or (items, features, height, width) is normalised by its own statistics,
// which are handed out: they are an effect, to be committed once per update.
template <class S>
BatchNormed<S> batch_norm(Var<Array<S>> x, Var<Array<S>> gain, Var<Array<S>> bias, double eps = 1e-5) {
    const Fold fold = detail::checked_features(x, gain.value(), bias.value());
    check_eps("batch_norm", eps, x.shape());
    const std::size_t count = fold.outer * fold.inner;
    if (count == 1)
        throw Error("[batch_norm] one value a feature has no variance: " + to_string(x.shape()) +
                    "; evaluation takes running statistics");
    BatchStatistics<S> batch = batch_statistics(x, gain.value(), bias.value());
    Var<Array<S>> y = detail::batch_normalised(std::move(x), std::move(gain), std::move(bias), batch.mean,
                                               batch.variance, eps, true, fold);
    return {std::move(y), std::move(batch)};
}

// In evaluation, by what earlier batches left behind: constants.
template <class S> Var<Array<S>> batch_norm(Var<Array<S>> x, Var<Array<S>> gain, Var<Array<S>> bias,
                                            const RunningStatistics<S>& running, double eps = 1e-5) {
    const Fold fold = detail::checked_features(x, gain.value(), bias.value());
    detail::checked_features(x, running.mean, running.variance);
    check_eps("batch_norm", eps, x.shape());
    return detail::batch_normalised(std::move(x), std::move(gain), std::move(bias), running.mean,
                                    running.variance, eps, false, fold);
}

}  // namespace tally
