// Defines loops over the elements of a `StridedIndex` and over windows of images. A sum starts from the value
// in its destination. With Write::set, a sum starts from -0, because -0 + x is x for every x, including -0.
// Splitting a sum into several calls therefore gives the same bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tally/kernels/kernels.hpp"

namespace tally::reference {

template <class S> S number(std::size_t n) { return as<S>(static_cast<double>(n)); }

template <class S> S sum_start(const S& dst, Write how, std::size_t terms) {
    if (how == Write::add) return dst;
    return terms ? -S(0) : S(0);
}

template <class S> void store(Into<S[]> into, std::size_t i, S value) {
    if (into.how == Write::add) value = into.dst[i] + value;
    into.dst[i] = value;
}

// Calls visit(i, at) for each element i of the `StridedIndex`, with the offset `at` of each operand.
template <int Operands, class Visit> void follow(const StridedIndex<Operands>& walk, Visit visit) {
    std::array<std::size_t, max_rank> index{};
    std::array<std::ptrdiff_t, Operands> at{};
    for (std::size_t i = 0; i < walk.size; ++i) {
        visit(i, at);
        for (auto axis = static_cast<std::size_t>(walk.rank); axis-- > 0;) {
            const bool wraps = ++index[axis] == walk.extent[axis];
            for (std::size_t o = 0; o < Operands; ++o)
                at[o] += walk.stride[o][axis] * (wraps ? 1 - static_cast<std::ptrdiff_t>(index[axis]) : 1);
            if (!wraps) break;
            index[axis] = 0;
        }
    }
}

// Sums value(i, at) over the axes along which a broadcast operand is repeated.
template <class S, int Operands, class Value>
void sum_along(const StridedIndex<Operands>& walk, std::size_t operand, Into<S[]> d, Value value) {
    const S start = sum_start(S(0), Write::set, walk.size);
    if (d.how == Write::set && walk.rank == 1 && walk.stride[operand][0] == 1)  // d may overwrite dy
        return follow(walk,
                      [&](std::size_t i, const auto& at) { d.dst[at[operand]] = start + value(i, at); });
    if (d.how == Write::set)
        for (std::size_t i = 0; i < walk.operand_size[operand]; ++i) d.dst[i] = start;
    follow(walk, [&](std::size_t i, const auto& at) { d.dst[at[operand]] += value(i, at); });
}

// ---- windows over images ----

// Calls visit(index in the columns, is inside the image, index in the image) for each element of each window.
template <class Visit>
void each_place(const SlidingWindow& w, std::size_t images, std::size_t channels, Visit visit) {
    std::size_t at = 0;
    for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t i = 0; i < w.window_h; ++i)
            for (std::size_t j = 0; j < w.window_w; ++j)
                for (std::size_t image = 0; image < images; ++image)
                    for (std::size_t down = 0; down < w.out_h; ++down)
                        for (std::size_t across = 0; across < w.out_w; ++across, ++at) {
                            // An index before the first pixel wraps around to an index beyond the last pixel.
                            const std::size_t row = down * w.stride + i - w.padding,
                                              column = across * w.stride + j - w.padding;
                            const bool inside = row < w.height && column < w.width;
                            const std::size_t plane = image * channels + c;
                            visit(at, inside, (plane * w.height + row) * w.width + column);
                        }
}

template <class S>
void im2col(const S* x, S* columns, const SlidingWindow& windows, std::size_t images, std::size_t channels) {
    each_place(windows, images, channels, [&](std::size_t at, bool inside, std::size_t pixel) {
        columns[at] = inside ? x[pixel] : S(0);
    });
}

template <class S> void col2im(const S* columns, Into<S[]> x, const SlidingWindow& windows,
                               std::size_t images, std::size_t channels) {
    if (x.how == Write::set) std::fill_n(x.dst, images * channels * windows.height * windows.width, S(0));
    each_place(windows, images, channels, [&](std::size_t at, bool inside, std::size_t pixel) {
        if (inside) x.dst[pixel] += columns[at];
    });
}

template <class S>
void max_pool(const S* x, S* y, std::int32_t* place, const SlidingWindow& w, std::size_t planes) {
    for (std::size_t plane = 0; plane < planes; ++plane, x += w.height * w.width)
        for (std::size_t down = 0; down < w.out_h; ++down)
            for (std::size_t across = 0; across < w.out_w; ++across) {
                std::size_t best = down * w.stride * w.width + across * w.stride;
                for (std::size_t i = 0; i < w.window_h; ++i)
                    for (std::size_t j = 0; j < w.window_w; ++j) {
                        const std::size_t at = (down * w.stride + i) * w.width + across * w.stride + j;
                        if (x[at] > x[best] || x[at] != x[at]) best = at;
                    }
                *y++ = x[best];
                *place++ = static_cast<std::int32_t>(best);
            }
}

template <class S> void max_pool_back(const S* dy, const std::int32_t* place, Into<S[]> dx,
                                      const SlidingWindow& w, std::size_t planes) {
    if (dx.how == Write::set) std::fill_n(dx.dst, planes * w.height * w.width, S(0));
    for (std::size_t i = 0; i < planes * w.out_h * w.out_w; ++i)
        dx.dst[i / (w.out_h * w.out_w) * w.height * w.width + static_cast<std::size_t>(place[i])] += dy[i];
}

}  // namespace tally::reference
