// batch_norm() normalises each feature over the batch, then multiplies it by a gain and adds a bias.
#pragma once

#include <utility>

#include "tally/array/array.hpp"
#include "tally/array/axes.hpp"
#include "tally/array/statistics.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

namespace detail {
// batch_norm() returns the result and the statistics of the batch in training.
template <class S> struct BatchNormResult {
    Var<Array<S>> y;
    BatchStatistics<S> statistics;  // for RunningStatistics::commit after the update
};

// If `mean_depends_on_x`, gradients also flow through `mean` and `variance`, which were computed from x.
template <class S> Var<Array<S>> record_batch_norm(Var<Array<S>> x, Var<Array<S>> gain, Var<Array<S>> bias,
                                                   const Array<S>& mean, const Array<S>& variance, double eps,
                                                   bool mean_depends_on_x, const BatchNormDims& dims) {
    const Array<S> rstd =
        map(functor::NumberOver{1}, map(functor::Sqrt{}, map(functor::AddNumber{eps}, variance)));
    Array<S> y = Array<S>::empty_like(x.value());
    kernels_for("batch_norm", x.value(), gain.value(), bias.value(), mean)
        .batch_norm(x.value().data(), mean.data(), rstd.data(), gain.value().data(), bias.value().data(),
                    y.raw(), dims);
    const bool needs_dx = x.requires_grad(),
               needs_back_sums = gain.requires_grad() || (mean_depends_on_x && needs_dx);
    return record<"batch_norm">(
        std::move(y),
        std::tuple(save_if(needs_back_sums, x.value()), save_if(needs_back_sums, mean),
                   save_if(needs_back_sums || needs_dx, rstd), save_if(needs_dx, gain.value())),
        [dims, mean_depends_on_x](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved_x,
                                  const Array<S>& saved_mean, const Array<S>& saved_rstd,
                                  const Array<S>& saved_gain) {
            const Kernels<S>& kernel = kernels_for("batch_norm", dy);
            const Shape features{static_cast<std::int64_t>(dims.features)};
            Array<S> sum_dy, sum_dy_xhat;
            if (to.needs_grad(1) || (mean_depends_on_x && to.needs_grad(0))) {
                sum_dy = Array<S>::empty(features, dy.device());
                sum_dy_xhat = Array<S>::empty(features, dy.device());
                kernel.batch_norm_back_sums(dy.data(), saved_x.data(), saved_mean.data(), saved_rstd.data(),
                                            sum_dy.raw(), sum_dy_xhat.raw(), dims);
            }
            if (to.needs_grad(0))
                kernel.batch_norm_back(dy.data(), saved_x.data(), saved_mean.data(), saved_rstd.data(),
                                       saved_gain.data(), mean_depends_on_x ? sum_dy.data() : nullptr,
                                       sum_dy_xhat.data(), grad_buffer(to.into(0)), dims);
            if (to.needs_grad(1)) to.add(1, sum_dy_xhat);
            if (to.needs_grad(2)) {
                // The gradient of a feature's bias is the sum of all dy of this feature.
                const Shape whole{static_cast<std::int64_t>(dims.items), features[0],
                                  static_cast<std::int64_t>(dims.space)};
                kernel.scatter(broadcast_index(whole, Shape{features[0], 1}), dy.data(),
                               grad_buffer(to.into(2)));
            }
        },
        std::move(x), std::move(gain), std::move(bias));
}

// Returns the statistics of each feature of x (items, features, ...). Throws if gain or bias do not fit x.
template <class S>
BatchStatistics<S> batch_statistics(const Var<Array<S>>& x, const Array<S>& gain, const Array<S>& bias) {
    const BatchNormDims dims = detail::plan_batch_norm(x.shape(), gain.shape(), bias.shape());
    BatchStatistics<S> batch{Array<S>::empty_like(gain), Array<S>::empty_like(gain),
                             static_cast<double>(dims.items * dims.space)};
    kernels_for("batch_norm", x.value(), gain)
        .batch_moments(x.value().data(), batch.mean.raw(), batch.variance.raw(), dims);
    return batch;
}
}  // namespace detail

// For training, normalises x (items, features) or (items, features, height, width) by the statistics of x.
// Call RunningStatistics::commit() with the returned statistics once per update.
template <class S> detail::BatchNormResult<S> batch_norm(Var<Array<S>> x, Var<Array<S>> gain,
                                                         Var<Array<S>> bias, double eps = 1e-5) {
    const detail::BatchNormDims dims = detail::plan_batch_norm(x.shape(), gain.shape(), bias.shape());
    detail::require_valid_eps("batch_norm", eps, x.shape());
    const std::size_t count = dims.items * dims.space;
    if (count == 1)
        throw Error("[batch_norm] x " + to_string(x.shape()) +
                    " has one value per feature, which has no variance; use a larger batch, or pass running "
                    "statistics for evaluation");
    detail::BatchStatistics<S> batch = detail::batch_statistics(x, gain.value(), bias.value());
    Var<Array<S>> y = detail::record_batch_norm(std::move(x), std::move(gain), std::move(bias), batch.mean,
                                                batch.variance, eps, true, dims);
    return {std::move(y), std::move(batch)};
}

// For evaluation, normalises x by the running statistics, which count as constants.
template <class S> Var<Array<S>> batch_norm(Var<Array<S>> x, Var<Array<S>> gain, Var<Array<S>> bias,
                                            const RunningStatistics<S>& running, double eps = 1e-5) {
    const detail::BatchNormDims dims = detail::plan_batch_norm(x.shape(), gain.shape(), bias.shape());
    detail::plan_batch_norm(x.shape(), running.mean.shape(), running.variance.shape(),
                            "the running mean and variance");
    detail::require_valid_eps("batch_norm", eps, x.shape());
    return detail::record_batch_norm(std::move(x), std::move(gain), std::move(bias), running.mean,
                                     running.variance, eps, false, dims);
}

}  // namespace tally
