// Defines the kernel bodies of `gather`, `scatter` and other kernels that move elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tally/gpu/elementwise.hpp"
#include "tally/gpu/team.hpp"
#include "tally/gpu/walk.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

template <class S> struct FillBody {
    S value;
    S* y;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const { y[i] = value; }
};

template <class S> struct AddScaledBody {
    S factor;
    const S* x;
    Into<S[]> y;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const { store(y, i, factor * x[i]); }
};

template <class S> struct GatherBody {
    StridedIndex<1> walk;
    const S* x;
    Into<S[]> y;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const { store(y, i, x[places_at(walk, i)[0]]); }
};

template <class S> struct BlockBody {
    const S* x;
    std::size_t x_pitch;
    Into<S[]> y;
    std::size_t y_pitch, width;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const std::size_t row = i / width, column = i % width;
        store(y, row * y_pitch + column, x[row * x_pitch + column]);
    }
};

template <class S> struct RowsBody {
    const S* x;
    const std::int32_t* index;
    S* y;
    std::size_t width;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        y[i] = x[static_cast<std::size_t>(index[i / width]) * width + i % width];
    }
};

// One team handles each row of dy. The team of the first row with an index adds all rows with this index.
template <class S> struct RowsBackBody {
    const S* dy;
    const std::int32_t* index;
    S* dx;
    std::size_t count, width;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t row) const {
        const std::int32_t own = index[row];
        if (own < 0) return;
        const std::size_t first = team.fold(
            row, row, Smaller(), [&](std::size_t earlier) { return index[earlier] == own ? earlier : row; });
        if (first != row) return;
        team.each(width, [&](std::size_t i) {
            S& place = dx[static_cast<std::size_t>(own) * width + i];
            S total = place;
            for (std::size_t later = row; later < count; ++later)
                if (index[later] == own) total += dy[later * width + i];
            place = total;
        });
    }
};

template <class On, class S> void fill(S value, S* y, std::size_t n) {
    On::each("fill", n, FillBody<S>{value, y});
}

template <class On, class S> void add_scaled(S factor, const S* x, Into<S[]> y, std::size_t n) {
    On::each("add_scaled", n, AddScaledBody<S>{factor, x, y});
}

template <class On, class S> void gather(const StridedIndex<1>& walk, const S* x, Into<S[]> y) {
    On::each("gather", walk.size, GatherBody<S>{walk, x, y});
}

template <class On, class S> void scatter(const StridedIndex<1>& walk, const S* dy, Into<S[]> x) {
    sum_along<On>("scatter", walk, 0, x, CopyTerm<S>{dy});
}

template <class On, class S> void block_to_block(const S* x, std::size_t x_pitch, Into<S[]> y,
                                                 std::size_t y_pitch, std::size_t count, std::size_t width) {
    On::each("block", count * width, BlockBody<S>{x, x_pitch, y, y_pitch, width});
}

template <class On, class S>
void rows(const S* x, const std::int32_t* index, S* y, std::size_t count, std::size_t width) {
    On::each("rows", count * width, RowsBody<S>{x, index, y, width});
}

template <class On, class S> void rows_back(const S* dy, const std::int32_t* index, Into<S[]> dx,
                                            std::size_t count, std::size_t height, std::size_t width) {
    if (dx.how == Write::set) fill<On>(S(0), dx.dst, height * width);
    On::template teams<warp>("rows, backward", count, RowsBackBody<S>{dy, index, dx.dst, count, width});
}

template <class On, class S> void install_movement(Kernels<S>& t) {
    t.fill = fill<On, S>;
    t.add_scaled = add_scaled<On, S>;
    t.gather = gather<On, S>;
    t.scatter = scatter<On, S>;
    t.block = block_to_block<On, S>;
    t.rows = rows<On, S>;
    t.rows_back = rows_back<On, S>;
}

}  // namespace tally::gpu
