// Computes matrix products, whose elements are sums in a fixed order. Separate loops compute single rows and
// columns, small products, and large products. Threads divide the rows or columns of a large product. With
// Products::blas, BLAS computes large products.
#include <algorithm>

#include "tally/cpu/fast_families.hpp"
#include "tally/cpu/fused.hpp"
#include "tally/cpu/gemm_blocked.hpp"
#include "tally/cpu/simd_loops.hpp"
#include "tally/cpu/thread_pool.hpp"
#include "tally/cpu/xt.hpp"

namespace tally::cpu {

namespace {

// Multiplies a row `a` of k elements by the matrix b, whose rows are `pitch` elements apart.
template <class S> [[gnu::noinline]] void add_scaled_rows(const S* a, const S* b, std::size_t pitch,
                                                          Into<S[]> c, std::size_t n, std::size_t k) {
    if (n <= lanes<S>) {  // the sum stays in a register
        Batch<S> total = c.how == Write::set ? Batch<S>(sum_identity<S>(k)) : load_part(c.dst, n);
        for (std::size_t l = 0; l < k; ++l) total = fused(Batch<S>(a[l]), load_part(b + l * pitch, n), total);
        return store_part(total, c.dst, n);
    }
    const auto row = [&](std::size_t l) { return Contiguous<S>{b + l * pitch}; };
    std::size_t l = 0;
    const auto take = [&](auto start) {
        if (k - l >= 8) {
            const S* w = a + l;
            const Batch<S> w0(w[0]), w1(w[1]), w2(w[2]), w3(w[3]), w4(w[4]), w5(w[5]), w6(w[6]), w7(w[7]);
            simd_for_each<Write::set>(
                n, n, c.dst,
                [&](auto v, auto r0, auto r1, auto r2, auto r3, auto r4, auto r5, auto r6, auto r7) {
                    v = fused(w3, r3, fused(w2, r2, fused(w1, r1, fused(w0, r0, v))));
                    return fused(w7, r7, fused(w6, r6, fused(w5, r5, fused(w4, r4, v))));
                },
                start, row(l), row(l + 1), row(l + 2), row(l + 3), row(l + 4), row(l + 5), row(l + 6),
                row(l + 7));
            l += 8;
        } else {
            simd_for_each<Write::set>(
                n, n, c.dst, [w = Batch<S>(a[l])](auto v, auto r) { return fused(w, r, v); }, start, row(l));
            l += 1;
        }
    };
    if (c.how == Write::set) take(Broadcast<S>(sum_identity<S>(k)));
    while (l < k) take(Contiguous<S>{c.dst});
}

// Each lane computes the dot product of `a` and one row of b. Square blocks of b are transposed in registers.
template <class S> [[gnu::noinline]] void dots_in_lanes(const S* a, const S* b, Into<S[]> c, std::size_t k) {
    constexpr std::size_t L = lanes<S>;
    Batch<S> total = c.how == Write::set ? Batch<S>(-S(0)) : Batch<S>::load_unaligned(c.dst);
    const auto add = [&](const S* factors, const LaneMatrix<S>& square, std::size_t count) {
        unrolled<L>([&](auto i) __attribute__((always_inline)) {
            if (i < count) total = fused(Batch<S>(factors[i]), square[i], total);
        });
    };
    std::size_t l = 0;
    for (; l + L <= k; l += L) add(a + l, load_transposed<S>(b + l, k), L);
    if (l < k) add(a + l, load_transposed<S>(b + l, k, L, k - l), k - l);
    total.store_unaligned(c.dst);
}

// Computes the dot product of `a` with each row of b. Interleaved sums hide the latency of additions.
template <class S>
[[gnu::noinline]] void row_dots(const S* a, const S* b, Into<S[]> c, std::size_t n, std::size_t k) {
    constexpr std::size_t L = lanes<S>;
    const auto start = [&](std::size_t j) { return c.how == Write::set ? sum_identity<S>(k) : c.dst[j]; };
    std::size_t j = 0;
    for (; k >= L && j + L <= n; j += L, b += L * k) dots_in_lanes(a, b, from(c, j), k);
    for (; j + 4 <= n; j += 4, b += 4 * k) {  // four independent sums
        S total[4] = {start(j), start(j + 1), start(j + 2), start(j + 3)};
        for (std::size_t l = 0; l < k; ++l, prevent_vectorisation())
            for (std::size_t i = 0; i < 4; ++i) total[i] = fused(a[l], b[i * k + l], total[i]);
        std::copy_n(total, 4, c.dst + j);
    }
    for (; j < n; ++j, b += k) {
        S total = start(j);
        for (std::size_t l = 0; l < k; ++l, prevent_vectorisation()) total = fused(a[l], b[l], total);
        c.dst[j] = total;
    }
}

// ---- small products, in order: B is (k, n), A's element (i, l) is at i * row_stride + l * col_stride ----

template <std::size_t Rows, class S> void multiply_rows(const S* a, std::size_t row_stride,
                                                        std::size_t col_stride, const S* b, Into<S[]> c,
                                                        std::size_t n, std::size_t k) {
    for (std::size_t j = 0; j < n; j += lanes<S>) {
        const std::size_t width = n - j;
        Batch<S> total[Rows];
        for (std::size_t i = 0; i < Rows; ++i)
            total[i] = c.how == Write::set ? Batch<S>(-S(0)) : load_up_to(c.dst + i * n + j, width);
        for (std::size_t l = 0; l < k; ++l) {
            const Batch<S> row = load_up_to(b + l * n + j, width);
            for (std::size_t i = 0; i < Rows; ++i)
                total[i] = fused(Batch<S>(a[i * row_stride + l * col_stride]), row, total[i]);
        }
        for (std::size_t i = 0; i < Rows; ++i) store_up_to(total[i], c.dst + i * n + j, width);
    }
}

template <class S> [[gnu::noinline]] void multiply_all_rows(const S* a, std::size_t row_stride,
                                                            std::size_t col_stride, const S* b, Into<S[]> c,
                                                            const Product& p) {
    std::size_t i = 0;
    for (; i + 4 <= p.m; i += 4)
        multiply_rows<4>(a + i * row_stride, row_stride, col_stride, b, from(c, i * p.n), p.n, p.k);
    for (; i < p.m; ++i)
        multiply_rows<1>(a + i * row_stride, row_stride, col_stride, b, from(c, i * p.n), p.n, p.k);
}

template <class S>
[[gnu::noinline]] void multiply_in_order(const Product& p, const S* a, const S* b, Into<S[]> c) {
    const std::size_t row_stride = p.transpose_a ? 1 : p.k, col_stride = p.transpose_a ? p.m : 1;
    alignas(line) S transposed[ordered_limit / 2];  // m is at least 2
    if (p.transpose_b) {
        for (std::size_t j = 0; j < p.n; ++j)
            for (std::size_t l = 0; l < p.k; ++l) transposed[l * p.n + j] = b[j * p.k + l];
        b = transposed;
    }
    multiply_all_rows(a, row_stride, col_stride, b, c, p);
}

// ---- large products, by BLAS ----

// Multiplies by BLAS. Returns false, and computes nothing, unless Products::blas is set, m > 1 and k > 1.
template <class S>
[[gnu::noinline]] bool multiplied_by_blas(const Product& p, const S* a, const S* b, Into<S[]> c) {
    if (products() != Products::blas || p.m == 1 || p.k == 1) return false;
    const auto stored = [](const S* x, std::size_t rows, std::size_t columns, bool transposed) {
        return transposed ? matrix_view(x, columns, rows) : matrix_view(x, rows, columns);
    };
    auto result = matrix_view(c.dst, p.m, p.n);
    xt::blas::gemm(stored(a, p.m, p.k, p.transpose_a), stored(b, p.k, p.n, p.transpose_b), result,
                   p.transpose_a, p.transpose_b, S(1), static_cast<S>(static_cast<int>(c.how)));
    return true;
}

// ---- large products in the defined order ----

inline constexpr std::size_t unit_of_columns = 32, unit_of_rows = 12;

// Computes the columns j to j + n - 1 of a product with a single row.
template <class S>
void multiply_row(const Product& p, const S* a, const S* b, Into<S[]> c, std::size_t j, std::size_t n) {
    p.transpose_b ? row_dots(a, b + j * p.k, from(c, j), n, p.k)
                  : add_scaled_rows(a, b + j, p.n, from(c, j), n, p.k);
}

template <class S>
[[gnu::noinline]] void multiply_large_row(const Product& p, const S* a, const S* b, Into<S[]> c) {
    parallel_for_extent(
        p.n, unit_of_columns, p.n * p.k, 1 << 15,
        [&](std::size_t j, std::size_t n, const Workspace&) { multiply_row(p, a, b, c, j, n); });
}

// Computes the outer product of column `a` and row b. A lambda would load its captures again for each row.
template <class S> void add_outer_rows(const S* a, const S* b, Into<S[]> c, std::size_t m, std::size_t n) {
    for (std::size_t i = 0; i < m; ++i, c.dst += n)
        if (c.how == Write::set)
            simd_for_each<Write::set>(
                n, n, c.dst, [](auto x, auto y) { return x * y; }, Broadcast<S>(a[i]), Contiguous<S>{b});
        else
            simd_for_each<Write::set>(
                n, n, c.dst, [w = Batch<S>(a[i])](auto v, auto r) { return fused(w, r, v); },
                Contiguous<S>{c.dst}, Contiguous<S>{b});
}

template <class S>
[[gnu::noinline]] void add_outer_product(const Product& p, const S* a, const S* b, Into<S[]> c) {
    // If c.dst is aligned, `unit` rows end at the end of a cache line, so that no two threads write to one line.
    constexpr std::size_t unit = line / sizeof(float);
    parallel_for_extent(p.m, unit, p.m * p.n, 1 << 15,
                        [&](std::size_t first, std::size_t count, const Workspace&) {
                            add_outer_rows(a + first, b, from(c, first * p.n), count, p.n);
                        });
}

template <class S>
[[gnu::noinline]] void multiply_large(const Product& p, const S* a, const S* b, const Sums<S>& c) {
    allocate_workspace();
    const Matrix<S> of_a{a, p.transpose_a ? 1 : p.k, p.transpose_a ? p.m : 1};
    const Matrix<S> of_b{b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1};
    const bool by_columns = p.n >= p.m;
    const std::size_t extent = by_columns ? p.n : p.m, unit = by_columns ? unit_of_columns : unit_of_rows;
    parallel_for_extent(
        extent, unit, p.m * p.n * p.k, 1 << 18,
        [&](std::size_t first, std::size_t count, const Workspace& workspace) {
            if (by_columns)
                multiply_in_blocks(p.m, count, p.k, of_a, of_b.from(0, first), c.from(0, first), workspace);
            else
                multiply_in_blocks(count, p.n, p.k, of_a.from(first, 0), of_b, c.from(first, 0), workspace);
        });
}

bool is_large(const Product& p) { return p.m * p.n * p.k > ordered_limit; }

// If the functions with loops were inlined here, a small product would save registers that only large products need.
template <class S> void matmul(const Product& p, const S* a, const S* b, Into<S[]> c) {
    if (p.n == 1 && p.m != 1)  // the transposed product of a single column is a single row
        return matmul<S>({1, p.m, p.k, false, !p.transpose_a}, b, a, c);
    if (p.m == 0 || p.n == 0) return;
    if (p.k == 0) {
        if (c.how == Write::set) std::fill_n(c.dst, p.m * p.n, S(0));
        return;
    }
    const bool large = is_large(p);
    if (large && multiplied_by_blas(p, a, b, c)) return;
    if (p.m == 1)
        large ? multiply_large_row(p, a, b, c) : multiply_row(p, a, b, c, 0, p.n);
    else if (p.k == 1 && p.n <= 4 * lanes<S>)
        multiply_all_rows(a, 1, 1, b, c, p);
    else if (p.k == 1)
        add_outer_product(p, a, b, c);
    else
        large ? multiply_large(p, a, b, Sums<S>::into(c, p.n)) : multiply_in_order(p, a, b, c);
}

template <class S>
void linear(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k) {
    const Product p{m, n, k, false, false};
    if (!bias) return matmul(p, x, w, Into<S[]>{y, Write::set});
    if (std::min({m, n, k}) > 1 && is_large(p) && products() == Products::ordered)
        return multiply_large(p, x, w, Sums<S>{y, n, bias, 0});
    for (std::size_t i = 0; i < m; ++i)
        simd_for_each<Write::set>(n, (m - i) * n, y + i * n, Identity(), Contiguous<S>{bias});
    matmul(p, x, w, Into<S[]>{y, Write::add});
}

template <class S>
void linear_relu(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k) {
    linear(x, w, bias, y, m, n, k);
    simd_for_each<Write::set>(
        m * n, m * n, y, [](auto v) { return functor::Relu().value(v); }, Contiguous<S>{y});
}

template <class S>
void relu_bias_back(const S* dy, const S* y, S* dz, Into<S[]> dbias, std::size_t rows, std::size_t width) {
    constexpr std::size_t at_once = 4;  // rows that are added while they are in the cache
    const auto masked = [](auto d, auto value) { return functor::Relu().back(d, value); };
    if (!dbias.dst || rows == 0) {
        simd_for_each<Write::set>(rows * width, rows * width, dz, masked, Contiguous<S>{dy},
                                  Contiguous<S>{y});
        if (dbias.dst) sum_rows(dz, dbias, rows, width, Identity());
        return;
    }
    for (std::size_t r = 0; r < rows; r += at_once, dbias.how = Write::add) {
        const std::size_t first = r * width, count = std::min(at_once, rows - r);
        // If dz is dy, padding must not overwrite rows of dy that later iterations read.
        const std::size_t capacity = (dz == dy ? count : rows - r) * width;
        simd_for_each<Write::set>(count * width, capacity, dz + first, masked, Contiguous<S>{dy + first},
                                  Contiguous<S>{y + first});
        sum_rows(dz + first, dbias, count, width, Identity());
    }
}

}  // namespace

template <class S> void install_matmul(Kernels<S>& t) {
    t.matmul = matmul<S>;
    t.linear = linear<S>;
    t.linear_relu = linear_relu<S>;
    t.relu_bias_back = relu_bias_back<S>;
}

template void install_matmul(Kernels<float>&);
template void install_matmul(Kernels<double>&);

}  // namespace tally::cpu
