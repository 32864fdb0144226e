// Plans which matrices a product of arrays multiplies, and multiplies the matrices.
#pragma once

#include <array>
#include <cstddef>

#include "tally/array/array.hpp"
#include "tally/array/op_options.hpp"
#include "tally/array/shape.hpp"
#include "tally/array/transpose_cache.hpp"
#include "tally/kernels/into.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::detail {

// C[b] (m, n) = A[b] (m, k) · B[b] (k, n) for every b of the batch. Flags of `product` mark operands that are
// stored transposed. If all members share one B and A is not transposed, the plan is a single product.
struct ProductPlan {
    Product product;
    Shape shape;            // of the result
    StridedIndex<2> batch;  // of A and B, strides in matrices; rank 0: a single product
};
ProductPlan plan_product(const char* op, const Shape& a, const Shape& b, const TransposeOptions& options);

template <class S> void multiply(const Product& p, const Array<S>& a, const Array<S>& b, Into<S[]> c) {
    if (!try_multiply_by_cached_transpose(p, a, b, c))
        kernels_for("matmul", a, b).matmul(p, a.data(), b.data(), c);
}

// These functions plan the gradients of A and B. A transposed operand has a transposed gradient.
inline Product product_for_a(const Product& p) {
    return p.transpose_a ? Product{p.k, p.m, p.n, p.transpose_b, true}
                         : Product{p.m, p.k, p.n, false, !p.transpose_b};
}
inline Product product_for_b(const Product& p) {
    return p.transpose_b ? Product{p.n, p.k, p.m, true, p.transpose_a}
                         : Product{p.k, p.n, p.m, !p.transpose_a, false};
}

// Runs one product for each member of a batch. indices_of() maps the indices of a member's matrices in the
// forward product C = A · B to the indices of the factors and the result of this product. For the gradient
// dA = dC · Bᵀ, indices_of(forward_a, forward_b, forward_c) returns {forward_c, forward_b, forward_a}.
template <class S, class IndicesOf> void multiply_each(const StridedIndex<2>& batch, const Product& p,
                                                       const Array<S>& a, const Array<S>& b, Into<S[]> c,
                                                       IndicesOf indices_of) {
    const Kernels<S>& kernel = kernels_for("matmul", a, b);
    std::array<std::size_t, max_rank> position{};
    std::ptrdiff_t forward_a = 0, forward_b = 0;
    for (std::size_t forward_c = 0; forward_c < batch.size; ++forward_c) {
        const auto [factor_a, factor_b, result] =
            indices_of(static_cast<std::size_t>(forward_a), static_cast<std::size_t>(forward_b), forward_c);
        kernel.matmul(p, a.data() + factor_a * p.m * p.k, b.data() + factor_b * p.k * p.n,
                      {c.dst + result * p.m * p.n, c.how});
        for (auto axis = static_cast<std::size_t>(batch.rank); axis-- > 0;) {
            forward_a += batch.stride[0][axis];
            forward_b += batch.stride[1][axis];
            if (++position[axis] < batch.extent[axis]) break;
            forward_a -= batch.stride[0][axis] * static_cast<std::ptrdiff_t>(position[axis]);
            forward_b -= batch.stride[1][axis] * static_cast<std::ptrdiff_t>(position[axis]);
            position[axis] = 0;
        }
    }
}

// Returns the output buffer for a batch's gradient. The buffer is set to 0 if members share a matrix.
template <class S>
Into<S[]> summed_grad_buffer(Into<Array<S>> into, std::size_t members, std::size_t matrices) {
    const Into<S[]> d = grad_buffer(into);
    if (d.how == Write::add || members == matrices) return d;
    kernels_for("matmul", into.dst).fill(S(0), d.dst, into.dst.size());
    return {d.dst, Write::add};
}

struct LinearPlan {
    std::size_t rows, in, out;
    Shape shape;  // of the result
};
LinearPlan plan_linear(const char* op, const Shape& x, const Shape& w, const Shape* bias);

}  // namespace tally::detail
