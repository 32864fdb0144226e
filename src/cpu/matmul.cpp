// Matrix products. Small ones, single rows and single columns have loops of their own, which start from the
// destination and add one product after the other; the rest is BLAS, whose beta is the way of writing, and
// which takes large rows and columns, too, where it may use more than one thread.
#include <algorithm>
#include <limits>

#include "tally/cpu/families.hpp"
#include "tally/cpu/runs.hpp"
#include "tally/cpu/xt.hpp"

namespace tally::cpu {

namespace {

struct Times {
    template <class T> T operator()(T a, T b) const { return a * b; }
};

// c (n) (+)= a[0] * row 0 of b + a[1] * row 1 + ...: a single row times a matrix, in order at any size.
template <class S> void add_scaled_rows(const S* a, const S* b, Into<S[]> c, std::size_t n, std::size_t k) {
    if (n <= lanes<S>) {  // the sum stays in a register
        Batch<S> total = c.how == Write::set ? Batch<S>(nothing_yet<S>(k)) : load_part(c.dst, n);
        for (std::size_t l = 0; l < k; ++l) total = total + Batch<S>(a[l]) * load_part(b + l * n, n);
        return store_part(total, c.dst, n);
    }
    const auto row = [&](std::size_t l) { return Run<S>{b + l * n}; };
    std::size_t l = 0;
    const auto take = [&](auto start) {
        if (k - l >= 8) {
            const S* w = a + l;
            const Batch<S> w0(w[0]), w1(w[1]), w2(w[2]), w3(w[3]), w4(w[4]), w5(w[5]), w6(w[6]), w7(w[7]);
            each<Write::set>(
                n, n, c.dst,
                [&](auto v, auto r0, auto r1, auto r2, auto r3, auto r4, auto r5, auto r6, auto r7) {
                    return v + w0 * r0 + w1 * r1 + w2 * r2 + w3 * r3 + w4 * r4 + w5 * r5 + w6 * r6 + w7 * r7;
                },
                start, row(l), row(l + 1), row(l + 2), row(l + 3), row(l + 4), row(l + 5), row(l + 6),
                row(l + 7));
            l += 8;
        } else {
            each<Write::set>(
                n, n, c.dst, [w = Batch<S>(a[l])](auto v, auto r) { return v + w * r; }, start, row(l));
            l += 1;
        }
    };
    if (c.how == Write::set) take(One<S>(nothing_yet<S>(k)));
    while (l < k) take(Run<S>{c.dst});
}

// c[j] (+)= a · row j of b, in order while small.
template <class S> void dots(const S* a, const S* b, Into<S[]> c, std::size_t n, std::size_t k) {
    const auto start = [&](std::size_t j) { return c.how == Write::set ? nothing_yet<S>(k) : c.dst[j]; };
    const bool in_order = n * k <= ordered_limit;
    std::size_t j = 0;
    for (; in_order && j + 4 <= n; j += 4, b += 4 * k) {  // four sums, which do not wait for each other
        S total[4] = {start(j), start(j + 1), start(j + 2), start(j + 3)};
        for (std::size_t l = 0; l < k; ++l, one_by_one())
            for (std::size_t i = 0; i < 4; ++i) total[i] += a[l] * b[i * k + l];
        std::copy_n(total, 4, c.dst + j);
    }
    for (; j < n; ++j, b += k) {
        S total = start(j);
        if (in_order)
            for (std::size_t l = 0; l < k; ++l, one_by_one()) total += a[l] * b[l];
        else
            total += add_lanes(fold_lanes(
                k, -S(0), [](auto u, auto v) { return u + v; }, Times(), Run<S>{a}, Run<S>{b}));
        c.dst[j] = total;
    }
}

// ---- small products, in order; B is (k, n), A's element (i, l) lies at i * down + l * right ----

template <std::size_t Rows, class S> void multiply_rows(const S* a, std::size_t down, std::size_t right,
                                                        const S* b, Into<S[]> c, std::size_t n,
                                                        std::size_t k) {
    for (std::size_t j = 0; j < n; j += lanes<S>) {
        const std::size_t width = n - j;
        const auto load = [&](const S* p) {
            return width >= lanes<S> ? Batch<S>::load_unaligned(p) : load_part(p, width);
        };
        Batch<S> total[Rows];
        for (std::size_t i = 0; i < Rows; ++i)
            total[i] = c.how == Write::set ? Batch<S>(-S(0)) : load(c.dst + i * n + j);
        for (std::size_t l = 0; l < k; ++l) {
            const Batch<S> row = load(b + l * n + j);
            for (std::size_t i = 0; i < Rows; ++i)
                total[i] = total[i] + Batch<S>(a[i * down + l * right]) * row;
        }
        for (std::size_t i = 0; i < Rows; ++i) {
            if (width >= lanes<S>)
                total[i].store_unaligned(c.dst + i * n + j);
            else
                store_part(total[i], c.dst + i * n + j, width);
        }
    }
}

template <class S> void multiply_all_rows(const S* a, std::size_t down, std::size_t right, const S* b,
                                          Into<S[]> c, const Product& p) {
    std::size_t i = 0;
    for (; i + 4 <= p.m; i += 4) multiply_rows<4>(a + i * down, down, right, b, from(c, i * p.n), p.n, p.k);
    for (; i < p.m; ++i) multiply_rows<1>(a + i * down, down, right, b, from(c, i * p.n), p.n, p.k);
}

template <class S> void multiply_in_order(const Product& p, const S* a, const S* b, Into<S[]> c) {
    const std::size_t down = p.transpose_a ? 1 : p.k, right = p.transpose_a ? p.m : 1;
    alignas(line) S turned[ordered_limit / 2];  // m is at least 2
    if (p.transpose_b) {
        for (std::size_t j = 0; j < p.n; ++j)
            for (std::size_t l = 0; l < p.k; ++l) turned[l * p.n + j] = b[j * p.k + l];
        b = turned;
    }
    multiply_all_rows(a, down, right, b, c, p);
}

template <class S> void multiply_by_blas(const Product& p, const S* a, const S* b, Into<S[]> c) {
    const auto stored = [](const S* x, std::size_t rows, std::size_t columns, bool transposed) {
        return transposed ? matrix_view(x, columns, rows) : matrix_view(x, rows, columns);
    };
    auto result = matrix_view(c.dst, p.m, p.n);
    xt::blas::gemm(stored(a, p.m, p.k, p.transpose_a), stored(b, p.k, p.n, p.transpose_b), result,
                   p.transpose_a, p.transpose_b, S(1), static_cast<S>(static_cast<int>(c.how)));
}

// Whether a matrix is large enough that OpenBLAS, which counts in int, shares the work on it, where it may
// use more than one thread.
bool worth_threads(std::size_t rows, std::size_t columns) {
    constexpr std::size_t most = std::numeric_limits<int>::max();
    return rows * columns >= 1 << 15 && rows <= most && columns <= most && threads() > 1;
}

template <class S> void multiply_row_by_blas(const Product& p, const S* a, const S* b, Into<S[]> c) {
    if (c.how == Write::set) std::fill_n(c.dst, p.n, S(0));  // not every BLAS forgets what it multiplies by 0
    auto result = vector_view(c.dst, p.n);
    const auto stored = p.transpose_b ? matrix_view(b, p.n, p.k) : matrix_view(b, p.k, p.n);
    xt::blas::gemv(stored, vector_view(a, p.k), result, !p.transpose_b, S(1), S(1));
}

template <class S> void add_outer_product_by_blas(const Product& p, const S* a, const S* b, S* c) {
    auto result = matrix_view(c, p.m, p.n);
    xt::blas::ger(vector_view(a, p.m), vector_view(b, p.n), result);
}

template <class S> void matmul(const Product& p, const S* a, const S* b, Into<S[]> c) {
    if (p.n == 1 && p.m != 1)  // a single column: the transposed product is a single row
        return matmul<S>({1, p.m, p.k, false, !p.transpose_a}, b, a, c);
    if (p.m == 0 || p.n == 0) return;
    if (p.k == 0) {
        if (c.how == Write::set) std::fill_n(c.dst, p.m * p.n, S(0));
    } else if (p.m == 1 && worth_threads(p.k, p.n)) {
        multiply_row_by_blas(p, a, b, c);
    } else if (p.m == 1) {
        p.transpose_b ? dots(a, b, c, p.n, p.k) : add_scaled_rows(a, b, c, p.n, p.k);
    } else if (p.k == 1 && c.how == Write::add && worth_threads(p.m, p.n)) {
        add_outer_product_by_blas(p, a, b, c.dst);
    } else if (p.k == 1 && p.n <= 4 * lanes<S>) {
        multiply_all_rows(a, 1, 1, b, c, p);
    } else if (p.k == 1) {
        for (std::size_t i = 0; i < p.m; ++i) each(p.n, from(c, i * p.n), Times(), One<S>(a[i]), Run<S>{b});
    } else if (p.m * p.n * p.k <= ordered_limit) {
        multiply_in_order(p, a, b, c);
    } else {
        multiply_by_blas(p, a, b, c);
    }
}

template <class S>
void linear(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k) {
    if (!bias) return matmul({m, n, k, false, false}, x, w, Into<S[]>{y, Write::set});
    for (std::size_t i = 0; i < m; ++i) each<Write::set>(n, (m - i) * n, y + i * n, Same(), Run<S>{bias});
    matmul({m, n, k, false, false}, x, w, Into<S[]>{y, Write::add});
}

template <class S>
void linear_relu(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k) {
    linear(x, w, bias, y, m, n, k);
    each<Write::set>(
        m * n, m * n, y, [](auto v) { return functor::Relu().value(v); }, Run<S>{y});
}

template <class S>
void relu_bias_back(const S* dy, const S* y, S* dz, Into<S[]> dbias, std::size_t rows, std::size_t width) {
    constexpr std::size_t some = 4;  // rows that are added while they are still near
    const auto masked = [](auto d, auto value) { return functor::Relu().back(d, value); };
    if (!dbias.dst || rows == 0) {
        each<Write::set>(rows * width, rows * width, dz, masked, Run<S>{dy}, Run<S>{y});
        if (dbias.dst) sum_rows(dz, dbias, rows, width, Same());
        return;
    }
    for (std::size_t r = 0; r < rows; r += some, dbias.how = Write::add) {
        const std::size_t first = r * width, count = std::min(some, rows - r);
        const std::size_t room =
            (dz == dy ? count : rows - r) * width;  // in place, dy is still to be read there
        each<Write::set>(count * width, room, dz + first, masked, Run<S>{dy + first}, Run<S>{y + first});
        sum_rows(dz + first, dbias, count, width, Same());
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
