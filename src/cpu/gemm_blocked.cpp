// Multiplies matrices in blocks that fit the caches. Operands are packed into strips. A tile of the
// destination stays in registers while the loop adds products to the tile.
#include "tally/cpu/gemm_blocked.hpp"

#include <algorithm>
#include <new>

#include "tally/cpu/fused.hpp"

namespace tally::cpu {

namespace {

constexpr std::size_t depth = 256;  // summands per block

// The sizes are chosen for 32 vector registers with AVX-512, and for 16 registers otherwise. If the columns of `a`
// are contiguous, neighbouring strips share cache lines. Therefore `packed_columns` columns of all strips are packed
// before the next columns. Without AVX-512, `gap` elements separate two strips, so that equal columns of the strips
// are in different sets of the L1 cache.
#if defined(__AVX512F__)
constexpr std::size_t tile_rows = 12, few_rows = 6, pair_vectors = 8, packed_columns = depth, gap = 0;
constexpr bool first_strip_packs = false;
#else
constexpr std::size_t tile_rows = 6, few_rows = 2, pair_vectors = 4, packed_columns = 16, gap = 16;
constexpr bool first_strip_packs = true;
#endif
constexpr std::size_t loose_rows = std::min<std::size_t>(tile_rows, 8);  // tile rows if a is not packed
constexpr std::size_t near = std::size_t{32} << 10;                      // bytes of the L1 cache

template <class S> constexpr std::size_t tile_width = 2 * lanes<S>;
template <class S> constexpr std::size_t in_vectors = (tile_rows + lanes<S> - 1) / lanes<S>* lanes<S>;
// Elements from a packed column of `a` to the next one. If one vector stores a column, its last elements may overwrite
// the next column, which is stored later, or the gap after the strip.
template <class S>
constexpr std::size_t column_a = (first_strip_packs && tile_rows <= lanes<S>) ? tile_rows : in_vectors<S>;
static_assert(gap >= in_vectors<float> - column_a<float> && gap >= in_vectors<double> - column_a<double>);
template <class S> constexpr std::size_t strip_a(std::size_t k) { return column_a<S> * k + gap; }
template <class S>
constexpr std::size_t block_rows = Workspace::bytes_of_a / (strip_a<S>(depth) * sizeof(S)) * tile_rows;
template <class S> constexpr std::size_t block_width = Workspace::bytes_of_b / (depth * sizeof(S));

// ---- packing: copies a strip, so that its elements for each summand are contiguous ----

template <class S> struct Strip {  // element r of summand q is at r * across + q * along
    const S* at;
    std::size_t across, along, height, below;  // `below` elements, at least the strip's height, can be read
};

// Stores element r of summand q at index q * step + r of `to`. The other elements of `to` are undefined.
template <class S> void pack_across(const Strip<S>& strip, std::size_t k, S* to, std::size_t step) {
    constexpr std::size_t L = lanes<S>;
    for (std::size_t r = 0; r < strip.height; r += L)
        for (std::size_t q = 0; q < k; q += L) {
            const std::size_t width = std::min(L, k - q), height = std::min(L, strip.below - r);
            const S* from = strip.at + r * strip.across + q;
            const LaneMatrix<S> square = width == L && height == L
                                             ? load_transposed<S>(from, strip.across)
                                             : load_transposed<S>(from, strip.across, height, width);
            for (std::size_t i = 0; i < width; ++i) square[i].store_unaligned(to + (q + i) * step + r);
        }
}

template <class S> void pack_along(const Strip<S>& strip, std::size_t k, S* to, std::size_t step) {
    const S* from = strip.at;
    for (std::size_t q = 0; q < k; ++q, from += strip.along, to += step)
        for (std::size_t r = 0; r < strip.height; r += lanes<S>) {
            if constexpr (first_strip_packs) __builtin_prefetch(from + r + packed_columns * strip.along);
            const std::size_t readable = first_strip_packs ? strip.below : strip.height;
            load_up_to(from + r, readable - r).store_unaligned(to + r);
        }
}

template <class S> void pack(const Strip<S>& strip, std::size_t k, S* to, std::size_t step) {
    strip.across == 1 ? pack_along(strip, k, to, step) : pack_across(strip, k, to, step);
}

// ---- a tile ----

// The ways to read b. `in_place` and `packed` tiles do not prefetch b. A `streamed` tile reads b in place and prefetches
// the columns of the next tile. With `copied`, the tiles of the first strip of `a` also pack b for the other strips.
enum class Columns { in_place, packed, streamed, copied };

// One or more tiles in a row or in a column of tiles. All have the same width.
template <class S> struct Tiles {
    const S *a, *b;
    std::size_t a_down, a_right, b_down;
    Sums<S> c;
    std::size_t width, k;
    Columns columns = Columns::packed;
    S* copy = nullptr;  // `copied` tiles store their columns of b here
    std::size_t count = 1, next_a = 0, next_b = 0, next_c = 0, next_start = 0;  // distances from tile to tile
};

// Computes tiles of Rows x (Vectors * lanes) elements. Packed strips of `a` are stored column by column.
template <class S, std::size_t Rows, std::size_t Vectors, bool Packed, Columns How>
void add_tiles(const Tiles<S>& t) {
    constexpr std::size_t L = lanes<S>;
    const auto for_all = [](auto f) __attribute__((always_inline)) {
        unrolled<Rows>([&](auto i) __attribute__((always_inline)) {
            unrolled<Vectors>([&](auto v) __attribute__((always_inline)) { f(i, v); });
        });
    };
    Sums<S> c = t.c;
    const S *tile_a = t.a, *tile_b = t.b;
    [[maybe_unused]] S* copy = t.copy;
    for (std::size_t left = t.count; left > 0; --left) {
        Batch<S> total[Rows][Vectors];
        for_all([&](auto i, auto v) __attribute__((always_inline)) {
            total[i][v] =
                c.start ? load_up_to(c.start + i * c.start_pitch + v * L, t.width - v * L) : Batch<S>(-S(0));
        });
        // Prefetches the destination of the tile below, which is probably not in the cache.
        if constexpr (Packed)
            for_all([&](auto i, auto v) __attribute__((always_inline)) {
                __builtin_prefetch(c.at + (Rows + i) * c.pitch + v * L, 1);
            });
        const S *a = tile_a, *b = tile_b;
        const std::size_t a_down = Packed ? 1 : t.a_down;
#if !defined(__AVX512F__)  // AVX-512's tiles have twice as much work per iteration
#pragma GCC unroll 4
#endif
        for (std::size_t l = 0; l < t.k; ++l, a += t.a_right, b += t.b_down) {
            Batch<S> row[Vectors];
            unrolled<Vectors>([&](auto v) __attribute__((always_inline)) {
                row[v] = Batch<S>::load_unaligned(b + v * L);
                if constexpr (How == Columns::copied) row[v].store_aligned(copy + v * L);
            });
            if constexpr (How == Columns::streamed || How == Columns::copied)
                __builtin_prefetch(b + 2 * Vectors * L - 1);  // the next tile may begin in this cache line
            if constexpr (How == Columns::copied) copy += Vectors * L;
            unrolled<Rows>([&](auto i) __attribute__((always_inline)) {
                const Batch<S> factor(a[i * a_down]);
                unrolled<Vectors>([&](auto v) __attribute__((always_inline)) {
                    total[i][v] = fused(factor, row[v], total[i][v]);
                });
            });
        }
        for_all([&](auto i, auto v) __attribute__((always_inline)) {
            store_up_to(total[i][v], c.at + i * c.pitch + v * L, t.width - v * L);
        });
        tile_a += t.next_a;
        tile_b += t.next_b;
        c.at += t.next_c;
        if (c.start) c.start += t.next_start;
    }
}

template <class S> using AddTiles = void (*)(const Tiles<S>&);

template <class S, std::size_t Vectors, bool Packed, Columns How = Columns::in_place,
          std::size_t max_rows = Packed ? tile_rows : loose_rows>
AddTiles<S> tiles_of(std::size_t rows) {
    static constexpr auto made = []<std::size_t... i>(std::index_sequence<i...>) {
        return std::array<AddTiles<S>, sizeof...(i)>{add_tiles<S, i + 1, Vectors, Packed, How>...};
    }
    (std::make_index_sequence<max_rows>());
    return made[rows - 1];
}

template <class S> void add_tiles(std::size_t rows, bool packed, const Tiles<S>& tiles) {
    if constexpr (first_strip_packs) {  // b has more than two tiles, so `a` is packed
        if (tiles.columns == Columns::copied) return tiles_of<S, 2, true, Columns::copied>(rows)(tiles);
        if (tiles.columns == Columns::streamed) return tiles_of<S, 2, true, Columns::streamed>(rows)(tiles);
    }
    if (tiles.width > lanes<S>)
        (packed ? tiles_of<S, 2, true>(rows) : tiles_of<S, 2, false>(rows))(tiles);
    else
        (packed ? tiles_of<S, 1, true>(rows) : tiles_of<S, 1, false>(rows))(tiles);
}

// Multiplies a few rows of `a` by wide tiles of b. With few rows, more vectors of b fit into the registers.
// Requires contiguous rows of b. Returns the number of leading columns that have been computed.
template <class S> std::size_t multiply_few_rows(std::size_t m, std::size_t n, std::size_t k, Matrix<S> a,
                                                 Matrix<S> b, const Sums<S>& c) {
    if (m > few_rows || b.col_stride != 1) return 0;
    const std::size_t width = (m <= 2 ? pair_vectors : 4) * lanes<S>, count = n / width;
    const AddTiles<S> add = m <= 2 ? tiles_of<S, pair_vectors, false, Columns::in_place, 2>(m)
                                   : tiles_of<S, 4, false, Columns::in_place, few_rows>(m);
    Tiles<S> tiles{a.at, b.at, a.row_stride, a.col_stride, b.row_stride, c, width, k};
    tiles.count = count;
    tiles.next_b = tiles.next_c = tiles.next_start = width;
    add(tiles);
    return count * width;
}

// ---- a block ----

// Returns the strip height that divides the rows into the fewest strips. A strip of few rows is slow.
std::size_t strip_height(std::size_t rows, std::size_t max_height) {
    const std::size_t strips = (rows + max_height - 1) / max_height;
    return (rows + strips - 1) / strips;
}

template <class S> Columns how_to_read(std::size_t m, std::size_t n, Matrix<S> b) {
    if (b.col_stride != 1) return Columns::packed;
    if (first_strip_packs)
        return n <= 2 * tile_width<S> ? Columns::in_place
               : m <= tile_rows       ? Columns::streamed
                                      : Columns::copied;
    // A separate packing takes more time than it saves if `a` has few rows. The limit is higher if two rows of b
    // fit into a memory page.
    const bool few = m <= 24 || (m <= 4 * tile_rows && b.row_stride * sizeof(S) <= 2048);
    return few ? Columns::in_place : Columns::packed;
}

template <class S> struct Panels {  // columns of b
    S* packed;
    Matrix<S> b;
    Columns columns;

    Tiles<S> tiles(std::size_t j, std::size_t width, std::size_t k, bool first_strip) const {
        Tiles<S> made;  // the caller sets the other fields
        made.width = width;
        made.k = k;
        if (width == tile_width<S> && (columns != Columns::copied || first_strip)) made.columns = columns;
        const bool is_packed = made.columns == Columns::packed;
        made.b = is_packed ? packed + j * k : b.at + j;
        made.b_down = is_packed ? tile_width<S> : b.row_stride;
        made.next_b = is_packed ? tile_width<S> * k : tile_width<S>;
        if (made.columns == Columns::copied) made.copy = packed + j * k;
        return made;
    }
};

template <class S> Panels<S> pack_panels(Matrix<S> b, Columns columns, std::size_t n, std::size_t k, S* to) {
    for (std::size_t j = 0; j < n; j += tile_width<S>) {
        const std::size_t width = std::min(tile_width<S>, n - j);
        if (columns == Columns::packed || width < tile_width<S>)
            pack({b.at + j * b.col_stride, b.col_stride, b.row_stride, width, n - j}, k, to + j * k,
                 tile_width<S>);
    }
    return {to, b, columns};
}

template <class S> void multiply_block(std::size_t m, std::size_t n, std::size_t k, Matrix<S> a,
                                       const Panels<S>& panels, bool first_rows, const Sums<S>& c,
                                       S* packed_a) {
    const bool is_unpacked = n <= 2 * tile_width<S>;  // then `a` is read at most twice
    const bool neighbours = !is_unpacked || a.row_stride == 1;
    const std::size_t high = strip_height(m, neighbours ? tile_rows : loose_rows);
    const auto place = [&](std::size_t i) { return packed_a + i / high * strip_a<S>(k); };
    const std::size_t at_once = a.row_stride == 1 ? packed_columns : k;
    for (std::size_t l = 0; !is_unpacked && l < k; l += at_once)
        for (std::size_t i = 0; i < m; i += high)
            pack({a.from(i, l).at, a.row_stride, a.col_stride, std::min(high, m - i), m - i},
                 std::min(at_once, k - l), place(i) + l * column_a<S>, column_a<S>);
    // Multiplies `count` tiles, each to the right of the previous one or, with `down`, below it.
    const auto multiply = [&](std::size_t i, std::size_t j, std::size_t count, bool down) {
        Tiles<S> tiles = panels.tiles(j, std::min(tile_width<S>, n - j), k, first_rows && i == 0);
        tiles.a = is_unpacked ? a.at + i * a.row_stride : place(i);
        tiles.a_down = a.row_stride;
        tiles.a_right = is_unpacked ? a.col_stride : column_a<S>;
        tiles.c = c.from(i, j);
        tiles.count = count;
        tiles.next_c = tiles.next_start = tile_width<S>;
        if (down) {
            tiles.next_a = is_unpacked ? high * a.row_stride : strip_a<S>(k);
            tiles.next_b = 0;
            tiles.next_c = high * c.pitch;
            tiles.next_start = high * c.start_pitch;
        }
        add_tiles(std::min(high, m - i), neighbours, tiles);
    };
    if (n * k * sizeof(S) <= near || m <= high)  // b stays in the cache, or is read only once
        for (std::size_t i = 0; i < m; i += high) {
            const std::size_t count = n / tile_width<S>, end = count * tile_width<S>;
            if (count > 0) multiply(i, 0, count, false);
            if (end < n) multiply(i, end, 1, false);
        }
    else
        for (std::size_t j = 0; j < n; j += tile_width<S>)
            for (std::size_t i = 0, count; i < m; i += count * high) {
                const bool copies = panels.columns == Columns::copied && first_rows && i == 0;
                // The first tile, which copies its panel, and a lower last strip have calls of their own.
                count = copies ? 1 : std::max<std::size_t>(1, (m - i) / high);
                multiply(i, j, count, true);
            }
}

// ---- few columns, and contiguous columns of a ----

// Returns whether computing cᵀ = bᵀ aᵀ is faster than c = a b. If c has few columns, c = a b leaves lanes of
// vectors unused, and tiles of `a` evict each other from the cache.
template <class S> bool better_transposed(std::size_t m, std::size_t n, std::size_t k, Matrix<S> a) {
    return a.row_stride == 1 && n <= tile_rows && n % lanes<S> != 0 && m >= 4 * lanes<S> && k >= 32;
}

template <class S> void multiply_transposed(std::size_t m, std::size_t n, std::size_t k, Matrix<S> a,
                                            Matrix<S> b, const Sums<S>& c, const Workspace& workspace) {
    constexpr std::size_t L = lanes<S>, width = 16 * L;
    alignas(line) S transposed[tile_rows * width];
    for (std::size_t i = 0; i < m; i += width) {
        const std::size_t count = std::min(width, m - i);
        const Sums<S> rows = c.from(i, 0);
        if (rows.start) pack_across<S>({rows.start, rows.start_pitch, 1, count, count}, n, transposed, width);
        multiply_in_blocks<S>(n, count, k, {b.at, b.col_stride, b.row_stride},
                              {a.at + i, a.col_stride, a.row_stride},
                              {transposed, width, rows.start ? transposed : nullptr, width}, workspace);
        for (std::size_t j = 0; j < n; j += L)
            for (std::size_t r = 0; r < count; r += L) {
                const LaneMatrix<S> square =
                    load_transposed<S>(transposed + j * width + r, width, std::min(L, n - j), L);
                for (std::size_t q = 0; q < std::min(L, count - r); ++q)
                    store_up_to(square[q], rows.at + (r + q) * rows.pitch + j, n - j);
            }
    }
}

}  // namespace

void Workspace::allocate() {
    if (memory_) return;
    memory_ = ::operator new(bytes, std::align_val_t(line));
    memory::packing_buffer_bytes.fetch_add(bytes, std::memory_order_relaxed);
}
Workspace::~Workspace() {
    if (!memory_) return;
    memory::packing_buffer_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    ::operator delete(memory_, std::align_val_t(line));
}

template <class S> void multiply_in_blocks(std::size_t m, std::size_t n, std::size_t k, Matrix<S> a,
                                           Matrix<S> b, Sums<S> c, const Workspace& workspace) {
    if (better_transposed(m, n, k, a)) return multiply_transposed(m, n, k, a, b, c, workspace);
    for (std::size_t j = multiply_few_rows(m, n, k, a, b, c); j < n; j += block_width<S>) {
        const std::size_t wide = std::min(block_width<S>, n - j);
        const Columns columns = how_to_read(m, wide, b);
        Sums<S> sums = c.from(0, j);
        for (std::size_t l = 0; l < k; l += depth, sums = sums.go_on()) {
            const std::size_t deep = std::min(depth, k - l);
            const Panels<S> panels = pack_panels(b.from(l, j), columns, wide, deep, workspace.b<S>());
            for (std::size_t i = 0; i < m; i += block_rows<S>)
                multiply_block(std::min(block_rows<S>, m - i), wide, deep, a.from(i, l), panels, i == 0,
                               sums.from(i, 0), workspace.a<S>());
        }
    }
}

template void multiply_in_blocks(std::size_t, std::size_t, std::size_t, Matrix<float>, Matrix<float>,
                                 Sums<float>, const Workspace&);
template void multiply_in_blocks(std::size_t, std::size_t, std::size_t, Matrix<double>, Matrix<double>,
                                 Sums<double>, const Workspace&);

}  // namespace tally::cpu
