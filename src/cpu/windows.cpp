// Implements im2col for convolutions, its gradient col2im, and max pooling over windows of images.
#include <algorithm>

#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/simd_loops.hpp"

namespace tally::cpu {

namespace {

// Elements [from, to) of a row of the im2col matrix are inside the image. `pixel` belongs to element `from`.
struct VisiblePart {
    std::size_t from, to, pixel;
    VisiblePart(const SlidingWindow& w, std::size_t j) {  // j: column within the window
        from = j < w.padding ? (w.padding - j + w.stride - 1) / w.stride : 0;
        to = w.width + w.padding > j ? (w.width + w.padding - j + w.stride - 1) / w.stride : 0;
        from = std::min(from, w.out_w);
        to = std::clamp(to, from, w.out_w);
        pixel = from * w.stride + j - w.padding;
    }
};

// Calls visit(at, inside, row, visible) for each row of the im2col matrix. `at` is its offset in the matrix,
// and `row` its offset in x. If `inside` is true, the part `visible` of the row is inside the image.
template <class Visit>
void each_row_of_columns(const SlidingWindow& w, std::size_t images, std::size_t channels, Visit visit) {
    std::size_t at = 0;
    for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t i = 0; i < w.window_h; ++i)
            for (std::size_t j = 0; j < w.window_w; ++j) {
                const VisiblePart visible(w, j);
                for (std::size_t image = 0; image < images; ++image)
                    for (std::size_t down = 0; down < w.out_h; ++down, at += w.out_w) {
                        const std::size_t row = down * w.stride + i - w.padding;  // wraps around if negative
                        visit(at, row < w.height && visible.from < visible.to,
                              ((image * channels + c) * w.height + row) * w.width, visible);
                    }
            }
}

template <class S>
void im2col(const S* x, S* columns, const SlidingWindow& w, std::size_t images, std::size_t channels) {
    const std::size_t size = channels * w.window_h * w.window_w * images * w.out_h * w.out_w;
    each_row_of_columns(w, images, channels,
                        [&](std::size_t at, bool inside, std::size_t row, const VisiblePart& visible) {
                            S* const to = columns + at;
                            if (!inside) return void(std::fill_n(to, w.out_w, S(0)));
                            const S* const pixels = x + row + visible.pixel;
                            const std::size_t n = visible.to - visible.from;
                            std::fill_n(to, visible.from, S(0));
                            if (w.stride == 1)
                                simd_for_each<Write::set>(n, size - at - visible.from, to + visible.from,
                                                          Identity(), Contiguous<S>{pixels});
                            else
                                for (std::size_t a = 0; a < n; ++a)
                                    to[visible.from + a] = pixels[a * w.stride];
                            std::fill_n(to + visible.to, w.out_w - visible.to, S(0));
                        });
}

template <class S>
void col2im(const S* columns, Into<S[]> x, const SlidingWindow& w, std::size_t images, std::size_t channels) {
    if (x.how == Write::set) std::fill_n(x.dst, images * channels * w.height * w.width, S(0));
    each_row_of_columns(w, images, channels,
                        [&](std::size_t at, bool inside, std::size_t row, const VisiblePart& visible) {
                            if (!inside) return;
                            S* const pixels = x.dst + row + visible.pixel;
                            const S* const terms = columns + at + visible.from;
                            const std::size_t n = visible.to - visible.from;
                            if (w.stride == 1)
                                simd_for_each<Write::add>(n, n, pixels, Identity(), Contiguous<S>{terms});
                            else
                                for (std::size_t a = 0; a < n; ++a) pixels[a * w.stride] += terms[a];
                        });
}

// Unrolls the loops over windows of common sizes. Side = 0 supports windows of any size.
template <std::size_t Side, class S>
void largest_of_plane(const S* x, S* y, std::int32_t* place, const SlidingWindow& w) {
    const std::size_t tall = Side == 0 ? w.window_h : Side, wide = Side == 0 ? w.window_w : Side;
    for (std::size_t down = 0; down < w.out_h; ++down)
        for (std::size_t across = 0; across < w.out_w; ++across) {
            const std::size_t first = (down * w.width + across) * w.stride;
            std::size_t best = first;
            S largest = x[first];
            for (std::size_t i = 0; i < tall; ++i)
                for (std::size_t j = 0; j < wide; ++j) {
                    const std::size_t at = first + i * w.width + j;
                    const S pixel = x[at];
                    const bool larger = pixel > largest, none = pixel != pixel, chosen = larger || none;
                    largest = chosen ? pixel : largest;
                    best = chosen ? at : best;
                }
            *y++ = largest;
            *place++ = static_cast<std::int32_t>(best);
        }
}

template <class S>
void max_pool(const S* x, S* y, std::int32_t* place, const SlidingWindow& w, std::size_t planes) {
    const std::size_t side = w.window_h == w.window_w ? w.window_h : 0;
    const auto largest = side == 2   ? largest_of_plane<2, S>
                         : side == 3 ? largest_of_plane<3, S>
                                     : largest_of_plane<0, S>;
    for (std::size_t plane = 0; plane < planes; ++plane, x += w.height * w.width) {
        largest(x, y, place, w);
        y += w.out_h * w.out_w;
        place += w.out_h * w.out_w;
    }
}

template <class S> void max_pool_back(const S* dy, const std::int32_t* place, Into<S[]> dx,
                                      const SlidingWindow& w, std::size_t planes) {
    const std::size_t pixels = w.height * w.width, windows = w.out_h * w.out_w;
    if (dx.how == Write::set) std::fill_n(dx.dst, planes * pixels, S(0));
    for (std::size_t plane = 0; plane < planes; ++plane, dx.dst += pixels, dy += windows, place += windows)
        for (std::size_t i = 0; i < windows; ++i) dx.dst[place[i]] += dy[i];
}

}  // namespace

template <class S> void install_windows(Kernels<S>& t) {
    t.im2col = im2col<S>;
    t.col2im = col2im<S>;
    t.max_pool = max_pool<S>;
    t.max_pool_back = max_pool_back<S>;
}

template void install_windows(Kernels<float>&);
template void install_windows(Kernels<double>&);

}  // namespace tally::cpu
