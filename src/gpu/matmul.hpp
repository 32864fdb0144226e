// Defines the kernel bodies of matrix products. One thread per element adds all products to the
// destination in order. With Products::blas, the BLAS library of the device computes large products.
#pragma once

#include <cmath>
#include <cstddef>

#include "tally/gpu/movement.hpp"
#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

template <class S> struct ProductBody {
    Product p;
    const S *a, *b;
    const S* bias;  // the start of each row, or null
    Into<S[]> c;
    bool relu = false;  // apply relu to the result
    TALLY_HOST_DEVICE void operator()(std::size_t at) const {
        using std::fma;
        const std::size_t i = at / p.n, j = at % p.n;
        const std::size_t a_step = p.transpose_a ? p.m : 1, b_step = p.transpose_b ? 1 : p.n;
        const S* from_a = a + (p.transpose_a ? i : i * p.k);
        const S* from_b = b + (p.transpose_b ? j * p.k : j);
        S total = bias ? bias[j] : start_of(c, at, p.k);
        for (std::size_t l = 0; l < p.k; ++l) total = fma(from_a[l * a_step], from_b[l * b_step], total);
        c.dst[at] = relu ? functor::Relu().value(total) : total;
    }
};

template <class S> struct RepeatRowBody {
    const S* row;
    S* y;
    std::size_t width;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const { y[i] = row[i % width]; }
};

// Each thread processes all rows of one column.
template <class S> struct ReluBiasBackBody {
    const S *dy, *y;
    S* dz;
    Into<S[]> dbias;
    std::size_t rows, width;
    TALLY_HOST_DEVICE void operator()(std::size_t column) const {
        S total = start_of(dbias, column, rows);
        for (std::size_t r = 0; r < rows; ++r) {
            const std::size_t i = r * width + column;
            const S d = functor::Relu().back(dy[i], y[i]);
            dz[i] = d;
            total += d;
        }
        dbias.dst[column] = total;
    }
};

// Returns whether the sums of the product are computed in order. A sum of one term has only one order.
template <class On> bool multiplies_in_order(const Product& p) {
    return p.k <= 1 || p.m * p.n * p.k <= ordered_limit || On::products() == Products::ordered;
}

template <class On, class S> void matmul(const Product& p, const S* a, const S* b, Into<S[]> c) {
    if (multiplies_in_order<On>(p))
        On::each("matmul", p.m * p.n, ProductBody<S>{p, a, b, nullptr, c});
    else
        On::multiply(p, a, b, c);
}

template <class On, class S>
void linear(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k) {
    const Product p{m, n, k, false, false};
    if (multiplies_in_order<On>(p))
        return On::each("linear", m * n, ProductBody<S>{p, x, w, bias, {y, Write::set}});
    if (bias) On::each("linear, bias", m * n, RepeatRowBody<S>{bias, y, n});
    On::multiply(p, x, w, Into<S[]>{y, bias ? Write::add : Write::set});
}

template <class On, class S>
void linear_relu(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k) {
    const Product p{m, n, k, false, false};
    if (bias && multiplies_in_order<On>(p))
        return On::each("linear_relu", m * n, ProductBody<S>{p, x, w, bias, {y, Write::set}, true});
    linear<On>(x, w, bias, y, m, n, k);
    On::each("linear_relu", m * n, MapBody<functor::Relu, S>{{}, y, y});
}

template <class On, class S>
void relu_bias_back(const S* dy, const S* y, S* dz, Into<S[]> dbias, std::size_t rows, std::size_t width) {
    if (dbias.dst)
        On::each("linear_relu, backward", width, ReluBiasBackBody<S>{dy, y, dz, dbias, rows, width});
    else
        On::each("linear_relu, backward", rows * width,
                 MapBackBody<functor::Relu, S>{{}, dy, y, {dz, Write::set}});
}

template <class On, class S> void install_matmul(Kernels<S>& t) {
    t.matmul = matmul<On, S>;
    t.linear = linear<On, S>;
    t.linear_relu = linear_relu<On, S>;
    t.relu_bias_back = relu_bias_back<On, S>;
}

}  // namespace tally::gpu
