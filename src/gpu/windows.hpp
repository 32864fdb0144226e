// Defines kernel bodies for windows over images. One thread computes each element of the output.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

TALLY_HOST_DEVICE constexpr std::size_t split_off(std::size_t& i, std::size_t extent) {
    const std::size_t remaining = i % extent;
    i /= extent;
    return remaining;
}

template <class S> struct Im2colBody {
    const S* x;
    S* columns;
    SlidingWindow w;
    std::size_t images, channels;
    TALLY_HOST_DEVICE void operator()(std::size_t at) const {
        std::size_t remaining = at;
        const std::size_t across = split_off(remaining, w.out_w), down = split_off(remaining, w.out_h),
                          image = split_off(remaining, images), j = split_off(remaining, w.window_w),
                          i = split_off(remaining, w.window_h), channel = remaining;
        const std::size_t row = down * w.stride + i - w.padding,
                          column = across * w.stride + j - w.padding;  // wrap around if negative
        const bool inside = row < w.height && column < w.width;
        columns[at] = inside ? x[((image * channels + channel) * w.height + row) * w.width + column] : S(0);
    }
};

// Finds the window whose element `place` covers the pixel. Returns false if no window covers the pixel.
TALLY_HOST_DEVICE constexpr bool seen_by(std::size_t pixel, std::size_t place, const SlidingWindow& w,
                                         std::size_t count, std::size_t& window) {
    const std::size_t from_start = pixel + w.padding - place;  // wraps around if negative
    window = from_start / w.stride;
    return from_start % w.stride == 0 && window < count;
}

template <class S> struct Col2imBody {
    const S* columns;
    Into<S[]> x;
    SlidingWindow w;
    std::size_t images, channels;
    TALLY_HOST_DEVICE void operator()(std::size_t at) const {
        std::size_t remaining = at, down = 0, across = 0;
        const std::size_t column = split_off(remaining, w.width), row = split_off(remaining, w.height),
                          channel = split_off(remaining, channels), image = remaining;
        S total = x.how == Write::set ? S(0) : x.dst[at];
        for (std::size_t i = 0; i < w.window_h; ++i) {
            if (!seen_by(row, i, w, w.out_h, down)) continue;
            for (std::size_t j = 0; j < w.window_w; ++j) {
                if (!seen_by(column, j, w, w.out_w, across)) continue;
                const std::size_t place = ((channel * w.window_h + i) * w.window_w + j) * images + image;
                total += columns[(place * w.out_h + down) * w.out_w + across];
            }
        }
        x.dst[at] = total;
    }
};

template <class S> struct MaxPoolBody {
    const S* x;
    S* y;
    std::int32_t* place;
    SlidingWindow w;
    TALLY_HOST_DEVICE void operator()(std::size_t at) const {
        std::size_t remaining = at;
        const std::size_t across = split_off(remaining, w.out_w), down = split_off(remaining, w.out_h);
        const S* const plane = x + remaining * w.height * w.width;
        const std::size_t first = (down * w.width + across) * w.stride;
        std::size_t best = first;
        for (std::size_t i = 0; i < w.window_h; ++i)
            for (std::size_t j = 0; j < w.window_w; ++j) {
                const std::size_t pixel = first + i * w.width + j;
                if (plane[pixel] > plane[best] || plane[pixel] != plane[pixel]) best = pixel;
            }
        y[at] = plane[best];
        place[at] = static_cast<std::int32_t>(best);
    }
};

template <class S> struct MaxPoolBackBody {
    const S* dy;
    const std::int32_t* place;
    Into<S[]> dx;
    SlidingWindow w;
    TALLY_HOST_DEVICE void operator()(std::size_t at) const {
        const std::size_t pixel = at % (w.height * w.width), plane = at / (w.height * w.width);
        const std::size_t row = pixel / w.width, column = pixel % w.width, windows = w.out_h * w.out_w;
        S total = dx.how == Write::set ? S(0) : dx.dst[at];
        for (auto down = first_window(row, w.window_h); down < w.out_h && down * w.stride <= row; ++down)
            for (std::size_t across = first_window(column, w.window_w);
                 across < w.out_w && across * w.stride <= column; ++across) {
                const std::size_t i = plane * windows + down * w.out_w + across;
                if (static_cast<std::size_t>(place[i]) == pixel) total += dy[i];
            }
        dx.dst[at] = total;
    }
    // Returns the index of the first window of `extent` elements that covers the pixel.
    TALLY_HOST_DEVICE std::size_t first_window(std::size_t pixel, std::size_t extent) const {
        return pixel < extent ? 0 : (pixel - extent) / w.stride + 1;
    }
};

template <class On, class S>
void im2col(const S* x, S* columns, const SlidingWindow& w, std::size_t images, std::size_t channels) {
    On::each("im2col", channels * w.window_h * w.window_w * images * w.out_h * w.out_w,
             Im2colBody<S>{x, columns, w, images, channels});
}

template <class On, class S>
void col2im(const S* columns, Into<S[]> x, const SlidingWindow& w, std::size_t images, std::size_t channels) {
    On::each("col2im", images * channels * w.height * w.width,
             Col2imBody<S>{columns, x, w, images, channels});
}

template <class On, class S>
void max_pool(const S* x, S* y, std::int32_t* place, const SlidingWindow& w, std::size_t planes) {
    On::each("max_pool", planes * w.out_h * w.out_w, MaxPoolBody<S>{x, y, place, w});
}

template <class On, class S> void max_pool_back(const S* dy, const std::int32_t* place, Into<S[]> dx,
                                                const SlidingWindow& w, std::size_t planes) {
    On::each("max_pool, backward", planes * w.height * w.width, MaxPoolBackBody<S>{dy, place, dx, w});
}

template <class On, class S> void install_windows(Kernels<S>& t) {
    t.im2col = im2col<On, S>;
    t.col2im = col2im<On, S>;
    t.max_pool = max_pool<On, S>;
    t.max_pool_back = max_pool_back<On, S>;
}

}  // namespace tally::gpu
