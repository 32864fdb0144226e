// layer_norm() normalises each row, then multiplies by a gain and adds a bias.
#pragma once

#include <utility>

#include "tally/array/array.hpp"
#include "tally/array/shape_checks.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

// Normalises the last axis to mean 0 and variance 1, multiplies by gain and adds bias.
template <class S>
Var<Array<S>> layer_norm(Var<Array<S>> x, Var<Array<S>> gain, Var<Array<S>> bias, double eps = 1e-5) {
    const detail::ReduceDims rows = detail::plan_layer_norm(x.shape(), gain.shape(), bias.shape(), eps);
    const std::size_t count = rows.outer, width = rows.reduced;
    const Device device = x.value().device();
    const Shape per_row{static_cast<std::int64_t>(count)};
    Array<S> y = Array<S>::empty_like(x.value()), mean = Array<S>::empty(per_row, device),
             rstd = Array<S>::empty(per_row, device);
    detail::kernels_for("layer_norm", x.value(), gain.value(), bias.value())
        .layer_norm(x.value().data(), gain.value().data(), bias.value().data(), static_cast<S>(eps), y.raw(),
                    mean.raw(), rstd.raw(), count, width);

    const bool needs_statistics = x.requires_grad() || gain.requires_grad();  // dbias reads only dy
    return record<"layer_norm">(
        std::move(y),
        std::tuple(save_if(needs_statistics, x.value()), save_if(x.requires_grad(), gain.value()),
                   save_if(needs_statistics, mean), save_if(needs_statistics, rstd)),
        [count, width](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved_x,
                       const Array<S>& saved_gain, const Array<S>& saved_mean, const Array<S>& saved_rstd) {
            const detail::Kernels<S>& kernel = detail::kernels_for("layer_norm", dy);
            if (to.needs_grad(0))
                kernel.layer_norm_back(dy.data(), saved_x.data(), saved_gain.data(), saved_mean.data(),
                                       saved_rstd.data(), detail::grad_buffer(to.into(0)), count, width);
            if (to.needs_grad(1))
                kernel.layer_norm_back_gain(dy.data(), saved_x.data(), saved_mean.data(), saved_rstd.data(),
                                            detail::grad_buffer(to.into(1)), count, width);
            if (to.needs_grad(2))
                kernel.sum(dy.data(), detail::grad_buffer(to.into(2)),
                           detail::ReduceDims{1, count, width, /*in_order*/ true});
        },
        std::move(x), std::move(gain), std::move(bias));
}

}  // namespace tally
