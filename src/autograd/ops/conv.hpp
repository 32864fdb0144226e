// conv2d() and max_pool2d() move a window over images (items, channels, height, width).
#pragma once

#include <cstdint>
#include <utility>

#include "tally/array/array.hpp"
#include "tally/array/convolution.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

namespace detail {
// Computes conv2d() as the product of a matrix of image patches and a matrix of weights.
template <class S, class... Bias>
Var<Array<S>> record_conv(const ConvPlan& plan, Var<Array<S>> x, Var<Array<S>> weight, Bias... bias) {
    const Device device = x.value().device();
    const Kernels<S>& kernel = kernels_for("conv2d", x.value(), weight.value(), bias.value()...);
    Array<S> y = Array<S>::empty(plan.shape, device);
    Write how = Write::set;
    ((kernel.gather(bias_index(plan), bias.value().data(), {y.raw(), Write::set}), how = Write::add), ...);
    Convolution<S>(plan, kernel, device).forward(x.value().data(), weight.value().data(), {y.raw(), how});
    return record<"conv2d">(
        std::move(y),
        std::tuple(save_if(weight.requires_grad(), x.value()), save_if(x.requires_grad(), weight.value())),
        [plan](GradInputs<Array<S>> to, const Array<S>& dy, const Array<S>& saved_x,
               const Array<S>& saved_weight) {
            const Kernels<S>& kernels = kernels_for("conv2d", dy);
            if (to.needs_grad(0) || to.needs_grad(1)) {
                Convolution<S> convolution(plan, kernels, dy.device());
                if (to.needs_grad(0))
                    convolution.grad_x(dy.data(), saved_weight.data(), grad_buffer(to.into(0)));
                if (to.needs_grad(1))
                    convolution.grad_weight(dy.data(), saved_x.data(), grad_buffer(to.into(1)));
            }
            if constexpr (sizeof...(Bias) == 1)
                if (to.needs_grad(2)) kernels.scatter(bias_index(plan), dy.data(), grad_buffer(to.into(2)));
        },
        std::move(x), std::move(weight), std::move(bias)...);
}
}  // namespace detail

// Convolves x (items, in, height, width) with weight (out, in, kernel height, kernel width), and adds bias
// (out). Each edge of an image is padded with `padding` zeros.
template <class S> Var<Array<S>> conv2d(Var<Array<S>> x, Var<Array<S>> weight, Var<Array<S>> bias,
                                        std::int64_t stride = 1, std::int64_t padding = 0) {
    const auto plan =
        detail::plan_conv(x.shape(), weight.shape(), &bias.shape(), stride, padding, x.value().device());
    return detail::record_conv(plan, std::move(x), std::move(weight), std::move(bias));
}

template <class S> Var<Array<S>> conv2d(Var<Array<S>> x, Var<Array<S>> weight, std::int64_t stride = 1,
                                        std::int64_t padding = 0) {
    const auto plan =
        detail::plan_conv(x.shape(), weight.shape(), nullptr, stride, padding, x.value().device());
    return detail::record_conv(plan, std::move(x), std::move(weight));
}

// Returns the largest element of each window of size x size pixels. If `stride` is 0, the stride is `size`,
// so that windows do not overlap. If several elements are largest, the first receives the gradient.
template <class S> Var<Array<S>> max_pool2d(Var<Array<S>> x, std::int64_t size, std::int64_t stride = 0) {
    const auto plan = detail::plan_pool(x.shape(), size, stride == 0 ? size : stride);
    const Device device = x.value().device();
    Array<S> y = Array<S>::empty(plan.shape, device);
    Array<std::int32_t> argmax = Array<std::int32_t>::empty(plan.shape, device);
    detail::kernels_for("max_pool2d", x.value())
        .max_pool(x.value().data(), y.raw(), argmax.raw(), plan.windows, plan.planes);
    return record<"max_pool2d">(
        std::move(y), save(argmax),
        [windows = plan.windows, planes = plan.planes](GradInputs<Array<S>> to, const Array<S>& dy,
                                                       const Array<std::int32_t>& saved) {
            detail::kernels_for("max_pool2d", dy)
                .max_pool_back(dy.data(), saved.data(), detail::grad_buffer(to.into(0)), windows, planes);
        },
        std::move(x));
}

}  // namespace tally
