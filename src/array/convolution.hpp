// Windows that move over images (items, channels, height, width): where they stop, and convolution as a
// product of matrices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tally/array/array.hpp"
#include "tally/array/axes.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

// Seen by a window, each place of it is a row of a matrix, and each place where the window stops a
// column: the images of a group, side by side. weight (out, weights) · columns (weights, images of the
// group * stops).
struct ConvPlan {
    SlidingWindow windows;
    std::size_t images, in, out;            // channels before and after
    std::size_t weights, positions, group;  // of one channel of the result; in one image; images at most
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
          columns_(scratch(plan.weights * plan.group * plan.positions, device)),
          turned_(scratch(plan.group > 1 ? plan.out * plan.group * plan.positions : 0, device)) {}

    void forward(const S* x, const S* weight, Into<S[]> y) {
        each_group([&](std::size_t first, std::size_t count) {
            im2col(x, first, count);
            const Into<S[]> to{y.dst + first * plan_.out * plan_.positions, y.how};
            const bool direct = count == 1;
            if (!direct &&
                to.how == Write::add)  // sums begin with what is there, for one image as for several
                kernel_.scatter(channel_major(count), to.dst, {turned_.raw(), Write::set});
            kernel_.matmul({plan_.out, count * plan_.positions, plan_.weights, false, false}, weight,
                           columns_.data(), direct ? to : Into<S[]>{turned_.raw(), to.how});
            if (!direct) kernel_.gather(channel_major(count), turned_.data(), {to.dst, Write::set});
        });
    }

    // Straight into the gradient: the first group sets or adds, as it is told, and the others add.
    void back_weight(const S* dy, const S* x, Into<S[]> dweight) {
        each_group([&](std::size_t first, std::size_t count) {
            im2col(x, first, count);
            kernel_.matmul({plan_.out, plan_.weights, count * plan_.positions, false, true},
                           channels_first(dy, first, count), columns_.data(), dweight);
            dweight.how = Write::add;
        });
    }

    void back_x(const S* dy, const S* weight, Into<S[]> dx) {
        each_group([&](std::size_t first, std::size_t count) {
            kernel_.matmul({plan_.weights, count * plan_.positions, plan_.out, true, false}, weight,
                           channels_first(dy, first, count), {columns_.raw(), Write::set});
            kernel_.col2im(columns_.data(), {dx.dst + first * plan_.pixels(), dx.how}, plan_.windows, count,
                           plan_.in);
        });
    }

private:
    static Array<S> scratch(std::size_t size, Device device) {
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

    void im2col(const S* x, std::size_t first, std::size_t count) {
        kernel_.im2col(x + first * plan_.pixels(), columns_.raw(), plan_.windows, count, plan_.in);
    }

    // From (channels, images, stops) to (images, channels, stops), or with scatter back.
    StridedIndex<1> channel_major(std::size_t count) const {
        return permuted_walk(Shape{static_cast<std::int64_t>(plan_.out), static_cast<std::int64_t>(count),
                                   static_cast<std::int64_t>(plan_.positions)},
                             {1, 0, 2});
    }

    const S* channels_first(const S* dy, std::size_t first, std::size_t count) {
        dy += first * plan_.out * plan_.positions;
        if (count == 1) return dy;
        kernel_.scatter(channel_major(count), dy, {turned_.raw(), Write::set});
        return turned_.data();
    }

    const ConvPlan& plan_;
    const Kernels<S>& kernel_;
    Array<S> columns_, turned_;
};

inline StridedIndex<1> one_a_channel(const ConvPlan& plan) {
    return broadcast_walk(plan.shape, Shape{static_cast<std::int64_t>(plan.out), 1, 1});
}

struct PoolPlan {
    SlidingWindow windows;
    std::size_t planes;
    Shape shape;
};
PoolPlan plan_pool(const Shape& x, std::int64_t size, std::int64_t stride);

}  // namespace tally::detail
