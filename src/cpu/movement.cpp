// Implements kernels that move elements, such as `gather` and `scatter`.
#include <algorithm>
#include <cstring>

#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/fused.hpp"
#include "tally/cpu/simd_loops.hpp"
#include "tally/cpu/walk.hpp"
#include "tally/cpu/xt.hpp"

namespace tally::cpu {

namespace {

template <class S> void fill(S value, S* y, std::size_t n) { std::fill_n(y, n, value); }

template <class S> void add_scaled(S factor, const S* x, Into<S[]> y, std::size_t n) {
    if (n == 0) return;
    const auto scaled = [factor](auto v) {
        return v * decltype(v)(factor);
    };  // a lambda, because xtensor would not vectorise a scalar operand
    if (factor != S(1)) return assign(y, n, xt::make_lambda_xfunction(scaled, vector_view(x, n)));
    if (y.how == Write::add) return assign(y, n, vector_view(x, n));
    std::memcpy(y.dst, x, n * sizeof(S));
}

template <class S> void put(Into<S[]> into, std::ptrdiff_t i, S value) {
    into.dst[i] = into.how == Write::set ? value : into.dst[i] + value;
}

// ---- walks across the lines of memory, in square tiles that stay in the cache ----

struct Transposed {
    std::size_t axis;      // the axis along which the walked array is contiguous
    std::ptrdiff_t pitch;  // step of the other array along that axis
};

// Finds the axis with stride 1. Returns false if no axis, or only the last axis, has stride 1.
bool transposed(const StridedIndex<1>& walk, Transposed& found) {
    if (walk.rank < 2 || row_step(walk, 0) == 1 || row_step(walk, 0) == 0) return false;
    std::ptrdiff_t pitch = 1;
    for (auto axis = static_cast<std::size_t>(walk.rank); axis-- > 0;) {
        if (walk.stride[0][axis] == 1) {
            found = {axis, pitch};
            return true;
        }
        pitch *= static_cast<std::ptrdiff_t>(walk.extent[axis]);
    }
    return false;
}

inline constexpr std::size_t tile = 16;

template <class S> void transpose_whole_tile(const S* from_lines, std::ptrdiff_t from_pitch, Into<S[]> to,
                                             std::ptrdiff_t to_pitch) {
    constexpr std::size_t L = lanes<S>;
    for (std::size_t b = 0; b < tile; b += L)
        for (std::size_t a = 0; a < tile; a += L) {
            const LaneMatrix<S> square =
                load_transposed<S>(from_lines + static_cast<std::ptrdiff_t>(b) * from_pitch + a,
                                   static_cast<std::size_t>(from_pitch));
            S* place = to.dst + static_cast<std::ptrdiff_t>(a) * to_pitch + b;
            for (std::size_t i = 0; i < L; ++i, place += to_pitch)
                (to.how == Write::set ? square[i] : Batch<S>::load_unaligned(place) + square[i])
                    .store_unaligned(place);
        }
}

// Transposes a tile of `lines` lines with `width` elements each.
template <class S> void transpose_tile(const S* from_lines, std::ptrdiff_t from_pitch, Into<S[]> to,
                                       std::ptrdiff_t to_pitch, std::size_t lines, std::size_t width) {
    if (lines == tile && width == tile) return transpose_whole_tile(from_lines, from_pitch, to, to_pitch);
    alignas(line) S columns[tile * tile];
    for (std::size_t b = 0; b < lines; ++b, from_lines += from_pitch)
        for (std::size_t a = 0; a < width; ++a) columns[a * tile + b] = from_lines[a];
    for (std::size_t a = 0; a < width; ++a, to.dst += to_pitch)
        simd_for_each(lines, to, Identity(), Contiguous<S>{columns + a * tile});
}

// Calls visit(i, at, height, width) for the first element of each tile.
template <class Visit> void each_tile(const StridedIndex<1>& walk, Transposed t, Visit visit) {
    if (walk.size == 0) return;
    const std::size_t height = walk.extent[t.axis], width = row_length(walk);
    const std::ptrdiff_t step = row_step(walk, 0);
    const std::size_t rows_below = static_cast<std::size_t>(t.pitch) / width;  // rows per step along t.axis
    StridedIndex<1> others = walk;  // the walk with an extent of 1 along t.axis
    others.size /= height;
    others.extent[t.axis] = 1;
    std::size_t row = 0;
    each_row(others, [&](std::size_t, const auto& at) {
        const std::size_t first = (row / rows_below * rows_below * height + row % rows_below) * width;
        ++row;
        for (std::size_t r = 0; r < height; r += tile)
            for (std::size_t c = 0; c < width; c += tile)
                visit(static_cast<std::ptrdiff_t>(first + c) + static_cast<std::ptrdiff_t>(r) * t.pitch,
                      at[0] + static_cast<std::ptrdiff_t>(r) + static_cast<std::ptrdiff_t>(c) * step,
                      std::min(tile, height - r), std::min(tile, width - c));
    });
}

template <class S> void gather(const StridedIndex<1>& walk, const S* x, Into<S[]> y) {
    if (Transposed t; transposed(walk, t))
        return each_tile(walk, t,
                         [&](std::ptrdiff_t i, std::ptrdiff_t at, std::size_t height, std::size_t width) {
                             transpose_tile(x + at, row_step(walk, 0), from(y, i), t.pitch, width, height);
                         });
    const std::size_t length = row_length(walk);
    const std::ptrdiff_t step = row_step(walk, 0);
    each_row(walk, [&](std::size_t i, const auto& at) {
        const Into<S[]> row = from(y, i);
        if (step == 1)
            simd_for_each(length, row, Identity(), Contiguous<S>{x + at[0]});
        else if (step == 0)
            simd_for_each(length, row, Identity(), Broadcast<S>(x[at[0]]));
        else
            simd_for_each(length, row, Identity(), Strided<S>{x + at[0], step});
    });
}

// Sets the elements of x that `walk` visits to the initial value of a sum.
template <class S> void clear(const StridedIndex<1>& walk, S* x) {
    const std::size_t length = row_length(walk);
    const std::ptrdiff_t step = row_step(walk, 0);
    each_row(walk, [&](std::size_t, const auto& at) {
        for (std::size_t j = 0; j < (step == 0 ? 1 : length); ++j)
            x[at[0] + static_cast<std::ptrdiff_t>(j) * step] = sum_identity<S>(walk.size);
    });
}

template <class S> void scatter(const StridedIndex<1>& walk, const S* dy, Into<S[]> x) {
    if (x.how == Write::set) {
        const std::size_t reached = places(walk, 0);
        const bool gaps = reached != walk.operand_size[0], sums = reached != walk.size;
        if (gaps) std::fill_n(x.dst, walk.operand_size[0], S(0));
        if (gaps && sums) clear(walk, x.dst);
        if (!gaps && sums) std::fill_n(x.dst, walk.operand_size[0], sum_identity<S>(walk.size));
        if (sums) x.how = Write::add;
    }
    if (Transposed t; transposed(walk, t))
        return each_tile(walk, t,
                         [&](std::ptrdiff_t i, std::ptrdiff_t at, std::size_t height, std::size_t width) {
                             transpose_tile(dy + i, t.pitch, from(x, at), row_step(walk, 0), height, width);
                         });
    const std::size_t length = row_length(walk);
    const std::ptrdiff_t step = row_step(walk, 0);
    each_row(walk, [&](std::size_t i, const auto& at) {
        if (step == 1)
            simd_for_each(length, from(x, at[0]), Identity(), Contiguous<S>{dy + i});
        else if (step == 0)
            x.dst[at[0]] =
                sum_run(x.how == Write::set ? sum_identity<S>(length) : x.dst[at[0]], length,
                        sums_in_order(walk, length) ? length : 0, Identity(), Contiguous<S>{dy + i});
        else
            for (std::size_t j = 0; j < length; ++j)
                put(x, at[0] + static_cast<std::ptrdiff_t>(j) * step, dy[i + j]);
    });
}

template <class S> void block(const S* x, std::size_t x_pitch, Into<S[]> y, std::size_t y_pitch,
                              std::size_t count, std::size_t width) {
    if (x_pitch == width && y_pitch == width)
        return simd_for_each(count * width, y, Identity(), Contiguous<S>{x});
    for (std::size_t r = 0; r < count; ++r)
        simd_for_each(width, from(y, r * y_pitch), Identity(), Contiguous<S>{x + r * x_pitch});
}

template <class S>
void rows(const S* x, const std::int32_t* index, S* y, std::size_t count, std::size_t width) {
    for (std::size_t r = 0; r < count; ++r)
        simd_for_each<Write::set>(width, (count - r) * width, y + r * width, Identity(),
                                  Contiguous<S>{x + static_cast<std::size_t>(index[r]) * width});
}

template <class S> void rows_back(const S* dy, const std::int32_t* index, Into<S[]> dx, std::size_t count,
                                  std::size_t height, std::size_t width) {
    if (dx.how == Write::set) std::fill_n(dx.dst, height * width, S(0));
    for (std::size_t r = 0; r < count; ++r)
        if (index[r] >= 0)
            simd_for_each<Write::add>(width, width, dx.dst + static_cast<std::size_t>(index[r]) * width,
                                      Identity(), Contiguous<S>{dy + r * width});
}

}  // namespace

template <class S> void install_movement(Kernels<S>& t) {
    t.fill = fill<S>;
    t.add_scaled = add_scaled<S>;
    t.gather = gather<S>;
    t.scatter = scatter<S>;
    t.block = block<S>;
    t.rows = rows<S>;
    t.rows_back = rows_back<S>;
}

template void install_movement(Kernels<float>&);
template void install_movement(Kernels<double>&);

}  // namespace tally::cpu
