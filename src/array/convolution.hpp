// Convolves images (items, channels, height, width) by a product of matrices (im2col), and plans max pooling.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tally/array/array.hpp"
#include "tally/array/axes.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

// The images are processed in chunks. The columns of a chunk are a matrix with one row for each element of
// the window and one column for each position of the window in each image. The result of the chunk is
// weight (out, weights) · columns (weights, images of the chunk * positions).
struct ConvPlan {
    SlidingWindow windows;
    std::size_t images, in, out;     // in and out are numbers of channels
    std::size_t weights, positions;  // weights of one channel of the result; window positions in one image
    std::size_t images_per_chunk;    // the last chunk may have fewer
    Shape shape;                     // of the result

    std::size_t pixels() const { return in * windows.height * windows.width; }  // of one image, all channels
};
ConvPlan plan_conv(const Shape& x, const Shape& weight, const Shape* bias, std::int64_t stride,
                   std::int64_t padding, Device device);

template <class S> class Convolution {
public:
    Convolution(const ConvPlan& plan, const Kernels<S>& kernel, Device device)
        : plan_(plan),
          kernel_(kernel),
          columns_(scratch(plan.weights * plan.images_per_chunk * plan.positions, device)),
          by_channel_(scratch(
              plan.images_per_chunk > 1 ? plan.out * plan.images_per_chunk * plan.positions : 0, device)) {}

    void forward(const S* x, const S* weight, Into<S[]> y) {
        each_chunk([&](std::size_t first, std::size_t count) {
            im2col(x, first, count);
            const Into<S[]> to{y.dst + first * plan_.out * plan_.positions, y.how};
            const bool direct = count == 1;
            if (!direct && to.how == Write::add)  // the sums in by_channel_ begin with y
                kernel_.scatter(image_channel_swap(count), to.dst, {by_channel_.raw(), Write::set});
            kernel_.matmul({plan_.out, count * plan_.positions, plan_.weights, false, false}, weight,
                           columns_.data(), direct ? to : Into<S[]>{by_channel_.raw(), to.how});
            if (!direct) kernel_.gather(image_channel_swap(count), by_channel_.data(), {to.dst, Write::set});
        });
    }

    // The first chunk sets dweight or adds to dweight, as `dweight.how` requires. All other chunks add.
    void grad_weight(const S* dy, const S* x, Into<S[]> dweight) {
        each_chunk([&](std::size_t first, std::size_t count) {
            im2col(x, first, count);
            kernel_.matmul({plan_.out, plan_.weights, count * plan_.positions, false, true},
                           to_channel_major(dy, first, count), columns_.data(), dweight);
            dweight.how = Write::add;
        });
    }

    void grad_x(const S* dy, const S* weight, Into<S[]> dx) {
        each_chunk([&](std::size_t first, std::size_t count) {
            kernel_.matmul({plan_.weights, count * plan_.positions, plan_.out, true, false}, weight,
                           to_channel_major(dy, first, count), {columns_.raw(), Write::set});
            kernel_.col2im(columns_.data(), {dx.dst + first * plan_.pixels(), dx.how}, plan_.windows, count,
                           plan_.in);
        });
    }

private:
    static Array<S> scratch(std::size_t size, Device device) {
        return Array<S>::empty({static_cast<std::int64_t>(size)}, device);
    }

    // Visits one empty chunk if `plan_.images` is 0, so that sums over the images become 0.
    template <class Visit> void each_chunk(Visit visit) const {
        std::size_t first = 0;
        do {
            visit(first, std::min(plan_.images_per_chunk, plan_.images - first));
            first += plan_.images_per_chunk;
        } while (first < plan_.images);
    }

    void im2col(const S* x, std::size_t first, std::size_t count) {
        kernel_.im2col(x + first * plan_.pixels(), columns_.raw(), plan_.windows, count, plan_.in);
    }

    // With this index, gather() copies (channels, images, positions) to (images, channels, positions), and
    // scatter() copies (images, channels, positions) to (channels, images, positions).
    StridedIndex<1> image_channel_swap(std::size_t count) const {
        return permuted_index(Shape{static_cast<std::int64_t>(plan_.out), static_cast<std::int64_t>(count),
                                    static_cast<std::int64_t>(plan_.positions)},
                              {1, 0, 2});
    }

    const S* to_channel_major(const S* dy, std::size_t first, std::size_t count) {
        dy += first * plan_.out * plan_.positions;
        if (count == 1) return dy;
        kernel_.scatter(image_channel_swap(count), dy, {by_channel_.raw(), Write::set});
        return by_channel_.data();
    }

    const ConvPlan& plan_;
    const Kernels<S>& kernel_;
    Array<S> columns_, by_channel_;  // by_channel_: (channels, images, positions)
};

// Returns the index that repeats the bias (out) over a result (images, out, height, width).
inline StridedIndex<1> bias_index(const ConvPlan& plan) {
    return broadcast_index(plan.shape, Shape{static_cast<std::int64_t>(plan.out), 1, 1});
}

// A PoolPlan describes a pooling of `planes` planes. A plane is one channel of one image.
struct PoolPlan {
    SlidingWindow windows;
    std::size_t planes;
    Shape shape;
};
PoolPlan plan_pool(const Shape& x, std::int64_t size, std::int64_t stride);

}  // namespace tally::detail
