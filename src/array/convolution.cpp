// Checks the shapes of convolutions and poolings, and divides the images of a convolution into chunks.
#include "tally/array/convolution.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "tally/base/error.hpp"

namespace tally::detail {

namespace {

// A small chunk stays in the cache of the CPU. A large chunk needs fewer kernel launches on the GPU.
std::size_t max_chunk_elements(Device device) { return std::size_t{1} << (device == Device::cpu ? 13 : 22); }

constexpr std::int64_t max_extent = std::numeric_limits<std::int32_t>::max();

SlidingWindow plan_windows(const char* op, const Shape& x, std::int64_t window_h, std::int64_t window_w,
                           std::int64_t stride, std::int64_t padding) {
    const auto fail = [&](const std::string& what) {
        throw Error(std::string("[") + op + "] " + what + "; x is " + to_string(x));
    };
    const std::string window = "a window of " + std::to_string(window_h) + " x " + std::to_string(window_w);
    if (window_h < 1 || window_w < 1) fail(window + " is empty");
    if (stride < 1) fail("the stride must be at least 1, not " + std::to_string(stride));
    if (padding < 0 || padding > max_extent)
        fail("the padding must be between 0 and " + std::to_string(max_extent) + ", not " +
             std::to_string(padding));
    const std::int64_t height = x[2] + 2 * padding, width = x[3] + 2 * padding;
    if (window_h > height || window_w > width)
        fail(window + " does not fit into the padded images of " + std::to_string(height) + " x " +
             std::to_string(width));
    const auto to_size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
    return {to_size(x[2]),
            to_size(x[3]),
            to_size(window_h),
            to_size(window_w),
            to_size(stride),
            to_size(padding),
            to_size((height - window_h) / stride + 1),
            to_size((width - window_w) / stride + 1)};
}

Shape result_of(const char* op, const Shape& x, std::int64_t channels, const SlidingWindow& w) {
    const auto height = static_cast<std::int64_t>(w.out_h), width = static_cast<std::int64_t>(w.out_w);
    try {
        return {x[0], channels, height, width};
    } catch (const Error& error) {
        throw Error(op, "the result (items, channels, ", height, ", ", width, ") is too large; x is ", x,
                    ", the padding is ", w.padding, ": ", error.what());
    }
}

}  // namespace

ConvPlan plan_conv(const Shape& x, const Shape& weight, const Shape* bias, std::int64_t stride,
                   std::int64_t padding, Device device) {
    if (x.rank() != 4 || weight.rank() != 4 || weight[1] != x[1])
        throw Error(
            "[conv2d] requires x (items, channels, height, width) and weight (out, channels, kernel height, "
            "kernel width); they are " +
            to_string(x) + " and " + to_string(weight));
    if (bias && *bias != Shape{weight[0]})
        throw Error("[conv2d] the bias of weight " + to_string(weight) + " must be " +
                    to_string(Shape{weight[0]}) + "; it is " + to_string(*bias));
    ConvPlan plan;
    plan.windows = plan_windows("conv2d", x, weight[2], weight[3], stride, padding);
    const SlidingWindow& w = plan.windows;
    plan.images = static_cast<std::size_t>(x[0]);
    plan.in = static_cast<std::size_t>(x[1]);
    plan.out = static_cast<std::size_t>(weight[0]);
    plan.weights = plan.in * w.window_h * w.window_w;
    plan.shape = result_of("conv2d", x, weight[0], w);  // throws before products below overflow
    plan.positions = w.out_h * w.out_w;
    std::size_t columns = 0;
    if (__builtin_mul_overflow(plan.weights, plan.positions, &columns) ||
        columns > static_cast<std::size_t>(max_extent))
        throw Error("[conv2d] the windows of one image hold more than " + std::to_string(max_extent) +
                    " numbers: " + std::to_string(w.out_h) + " x " + std::to_string(w.out_w) +
                    " windows of weight " + to_string(weight) + "; x is " + to_string(x));
    const std::size_t largest = std::max<std::size_t>(std::max(plan.weights, plan.out) * plan.positions, 1);
    plan.images_per_chunk = std::clamp<std::size_t>(max_chunk_elements(device) / largest, 1,
                                                    std::max<std::size_t>(plan.images, 1));
    return plan;
}

PoolPlan plan_pool(const Shape& x, std::int64_t size, std::int64_t stride) {
    if (x.rank() != 4)
        throw Error("[max_pool2d] requires x (items, channels, height, width); it is " + to_string(x));
    const SlidingWindow w = plan_windows("max_pool2d", x, size, size, stride, 0);
    if (w.height * w.width > static_cast<std::size_t>(max_extent))
        throw Error("[max_pool2d] an image can have at most 2147483647 pixels; x is " + to_string(x));
    return {w, static_cast<std::size_t>(x[0] * x[1]), result_of("max_pool2d", x, x[1], w)};
}

}  // namespace tally::detail
