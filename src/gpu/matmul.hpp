// Matrix products. Small ones start from the destination and add one product after the other; the rest is the
// device's library, whose beta is the way of writing.
#pragma once

#include <cstddef>

#include "autograd/kernels.hpp"
#include "gpu/memory.hpp"
#include "gpu/team.hpp"

namespace tally::gpu {

template <class S>
struct ProductBody {
    Product p;
    const S *a, *b;
    const S* bias;  // the start of each row, or null
    Into<S[]> c;
    TALLY_HOST_DEVICE void operator()(std::size_t at) const {
        const std::size_t i = at / p.n, j = at % p.n;
        const std::size_t a_step = p.transpose_a ? p.m : 1, b_step = p.transpose_b ? 1 : p.n;
        const S* from_a = a + (p.transpose_a ? i : i * p.k);
        const S* from_b = b + (p.transpose_b ? j * p.k : j);
        S total = bias ? bias[j] : start_of(c, at, p.k);
        for (std::size_t l = 0; l < p.k; ++l) total += from_a[l * a_step] * from_b[l * b_step];
        c.dst[at] = total;
    }
};

template <class S>
struct RepeatRowBody {
    const S* row;
    S* y;
    std::size_t width;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const { y[i] = row[i % width]; }
};

// A product with one summed element has one order only.
inline bool multiplies_in_order(const Product& p) { return p.k <= 1 || p.m * p.n * p.k <= ordered_limit; }

template <class On, class S>
void matmul(const Product& p, const S* a, const S* b, Into<S[]> c) {
    if (multiplies_in_order(p))
        On::each("matmul", p.m * p.n, ProductBody<S>{p, a, b, nullptr, c});
    else
        On::multiply(p, a, b, c);
}

template <class On, class S>
void linear(const S* x, const S* w, const S* bias, S* y, std::size_t m, std::size_t n, std::size_t k) {
    const Product p{m, n, k, false, false};
    if (multiplies_in_order(p))
        return On::each("linear", m * n, ProductBody<S>{p, x, w, bias, {y, Write::set}});
    if (bias) On::each("linear, bias", m * n, RepeatRowBody<S>{bias, y, n});
    On::multiply(p, x, w, Into<S[]>{y, bias ? Write::add : Write::set});
}

template <class On, class S>
void install_matmul(Kernels<S>& t) {
    t.matmul = matmul<On, S>;
    t.linear = linear<On, S>;
}

}  // namespace tally::gpu
