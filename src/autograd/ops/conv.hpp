// Windows that move over images (items, channels, height, width): convolution as a matrix
// product, and pooling.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "tally/autograd/record.hpp"
#include "tally/values/array.hpp"
#include "tally/values/axes.hpp"

namespace tally {

// Seen by a window, each place of it is a row of a matrix, and each place where the window stops a
// column: the images of a group, side by side. weight (out, weights) · columns (weights, images of the
// group * stops).
struct ConvPlan {
    SlidingWindow windows;
    std::size_t images, in, out;        // channels before and after
    std::size_t weights, stops, group;  // of one channel of the result; in one image; images at most
    Shape shape;

    std::size_t pixels() const { return in * windows.height * windows.width; }  // of one image
};
ConvPlan plan_conv(const Shape& x, const Shape& weight, const Shape* bias, std::int64_t stride,
                   std::int64_t padding, Device device);

template <class S> class Convolution {
public:
    Convolution(const ConvPlan& plan, const Kernels<S>& kernel, Device device)
        : plan_(plan),
          kernel_(kernel),
          columns_(room(plan.weights * plan.group * plan.stops, device)),
          turned_(room(plan.group > 1 ? plan.out * plan.group * plan.stops : 0, device)) {}

    void forward(const S* x, const S* weight, Into<S[]> y) {
        each_group([&](std::size_t first, std::size_t some) {
            see(x, first, some);
            const Into<S[]> to{y.dst + first * plan_.out * plan_.stops, y.how};
            const bool direct = some == 1;
            kernel_.matmul({plan_.out, some * plan_.stops, plan_.weights, false, false}, weight,
                           columns_.data(), direct ? to : Into<S[]>{turned_.raw(), Write::set});
            if (!direct) kernel_.gather(turning(some), turned_.data(), to);
        });
    }

    // Straight into the gradient: the first group sets or adds, as it is told, and the others add.
    void back_weight(const S* dy, const S* x, Into<S[]> dweight) {
        each_group([&](std::size_t first, std::size_t some) {
            see(x, first, some);
            kernel_.matmul({plan_.out, plan_.weights, some * plan_.stops, false, true},
                           channels_first(dy, first, some), columns_.data(), dweight);
            dweight.how = Write::add;
        });
    }

    void back_x(const S* dy, const S* weight, Into<S[]> dx) {
        each_group([&](std::size_t first, std::size_t some) {
            kernel_.matmul({plan_.weights, some * plan_.stops, plan_.out, true, false}, weight,
                           channels_first(dy, first, some), {columns_.raw(), Write::set});
            kernel_.col2im(columns_.data(), {dx.dst + first * plan_.pixels(), dx.how}, plan_.windows, some,
                           plan_.in);
        });
    }

private:
    static Array<S> room(std::size_t size, Device device) {
        return Array<S>::empty({static_cast<std::int64_t>(size)}, device);
    }

    // Also once where there are no images, so that a sum over them becomes 0.
    template <class Visit> void each_group(Visit visit) const {
        std::size_t first = 0;
        do {
            visit(first, std::min(plan_.group, plan_.images - first));
            first += plan_.group;
        } while (first < plan_.images);
    }

    void see(const S* x, std::size_t first, std::size_t some) {
        kernel_.im2col(x + first * plan_.pixels(), columns_.raw(), plan_.windows, some, plan_.in);
    }

    // From (channels, images, stops) to (images, channels, stops), or with scatter back.
    Walk<1> turning(std::size_t some) const {
        return permuted_walk(Shape{static_cast<std::int64_t>(plan_.out), static_cast<std::int64_t>(some),
                                   static_cast<std::int64_t>(plan_.stops)},
                             {1, 0, 2});
    }

    const S* channels_first(const S* dy, std::size_t first, std::size_t some) {
        dy += first * plan_.out * plan_.stops;
        if (some == 1) return dy;
        kernel_.scatter(turning(some), dy, {turned_.raw(), Write::set});
        return turned_.data();
    }

    const ConvPlan& plan_;
    const Kernels<S>& kernel_;
    Array<S> columns_, turned_;
};

namespace detail {

inline Walk<1> one_a_channel(const ConvPlan& plan) {
    return broadcast_walk(plan.shape, Shape{static_cast<std::int64_t>(plan.out), 1, 1});
}

// x (items, in, height, width) by weight (out, in, tall, wide): every window of x times
// every channel's weights.
template <class S, class... Bias>
Var<Array<S>> convolved(const ConvPlan& plan, Var<Array<S>> x, Var<Array<S>> weight, Bias... bias) {
    const Device device = x.value().device();
    const Kernels<S>& kernel = on("conv2d", x.value(), weight.value(), bias.value()...);
    Array<S> y = Array<S>::empty(plan.shape, device);
    Write how = Write::set;
    ((kernel.gather(one_a_channel(plan), bias.value().data(), {y.raw(), Write::set}), how = Write::add), ...);
    Convolution<S>(plan, kernel, device).forward(x.value().data(), weight.value().data(), {y.raw(), how});
    return record<"conv2d">(
        std::move(y),
        std::tuple(keep_if(weight.wants_grad(), x.value()), keep_if(x.wants_grad(), weight.value())),
        [plan](Pull<Array<S>> to, const Array<S>& dy, const Array<S>& kept_x, const Array<S>& kept_weight) {
            const Kernels<S>& at = on("conv2d", dy);
            if (to.wants(0) || to.wants(1)) {
                Convolution<S> convolution(plan, at, dy.device());
                if (to.wants(0)) convolution.back_x(dy.data(), kept_weight.data(), destination(to.into(0)));
                if (to.wants(1)) convolution.back_weight(dy.data(), kept_x.data(), destination(to.into(1)));
            }
            if constexpr (sizeof...(Bias) == 1)
                if (to.wants(2)) at.scatter(one_a_channel(plan), dy.data(), destination(to.into(2)));
        },
        std::move(x), std::move(weight), std::move(bias)...);
}

}  // namespace detail

// Every channel of the result is the sum of x (items, in, height, width) under its window of weights (out,
// in, tall, wide), and its bias (out). Beyond the edges x is 0, as far as the padding reaches.
template <class S> Var<Array<S>> conv2d(Var<Array<S>> x, Var<Array<S>> weight, Var<Array<S>> bias,
                                        std::int64_t stride = 1, std::int64_t padding = 0) {
    const ConvPlan plan =
        plan_conv(x.shape(), weight.shape(), &bias.shape(), stride, padding, x.value().device());
    return detail::convolved(plan, std::move(x), std::move(weight), std::move(bias));
}

template <class S> Var<Array<S>> conv2d(Var<Array<S>> x, Var<Array<S>> weight, std::int64_t stride = 1,
                                        std::int64_t padding = 0) {
    const ConvPlan plan = plan_conv(x.shape(), weight.shape(), nullptr, stride, padding, x.value().device());
    return detail::convolved(plan, std::move(x), std::move(weight));
}

struct PoolPlan {
    SlidingWindow windows;
    std::size_t planes;
    Shape shape;
};
PoolPlan plan_pool(const Shape& x, std::int64_t size, std::int64_t stride);

// The largest of every window of (size, size); stride 0 means windows side by side. The first of equals
// gets the gradient.
template <class S> Var<Array<S>> max_pool2d(Var<Array<S>> x, std::int64_t size, std::int64_t stride = 0) {
    const PoolPlan plan = plan_pool(x.shape(), size, stride == 0 ? size : stride);
    const Device device = x.value().device();
    Array<S> y = Array<S>::empty(plan.shape, device);
    Array<std::int32_t> places = Array<std::int32_t>::empty(plan.shape, device);
    on("max_pool2d", x.value()).max_pool(x.value().data(), y.raw(), places.raw(), plan.windows, plan.planes);
    return record<"max_pool2d">(
        std::move(y), keep(places),
        [windows = plan.windows, planes = plan.planes](Pull<Array<S>> to, const Array<S>& dy,
                                                       const Array<std::int32_t>& kept) {
            on("max_pool2d", dy)
                .max_pool_back(dy.data(), kept.data(), destination(to.into(0)), windows, planes);
        },
        std::move(x));
}

}  // namespace tally
