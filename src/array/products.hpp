// Plans which matrices a product of arrays multiplies, and multiplies the matrices.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

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
    // Without this constructor, g++ 12 fills the whole object with 0 first.
    ProductPlan(const Product& one, const Shape& result) : product(one), shape(result) {}

    Product product;
    Shape shape;                           // of the result
    std::optional<StridedIndex<2>> batch;  // of A and B, strides in matrices; empty: a single product
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

enum ForwardMatrix : std::size_t { forward_a, forward_b, forward_c };  // of a forward product C = A · B

// Runs one product for each member of a batch. `roles` says for each of a, b and c whether it is indexed like A,
// B or C of the forward product: A and B by their strides in `batch`, and C by the member. A gradient is indexed
// like its matrix, so for dA = dC · Bᵀ pass {forward_c, forward_b, forward_a}.
template <class S> void multiply_each(const StridedIndex<2>& batch, const Product& p, const Array<S>& a,
                                      const Array<S>& b, Into<S[]> c,
                                      const std::array<ForwardMatrix, 3>& roles) {
    const Kernels<S>& kernel = kernels_for("matmul", a, b);
    std::array<std::size_t, max_rank> position{};
    std::array<std::ptrdiff_t, 3> index{};  // of the member's matrices in the forward product
    const auto at = [&](std::size_t operand) { return static_cast<std::size_t>(index[roles[operand]]); };
    for (std::size_t member = 0; member < batch.size; ++member, ++index[forward_c]) {
        kernel.matmul(p, a.data() + at(0) * p.m * p.k, b.data() + at(1) * p.k * p.n,
                      {c.dst + at(2) * p.m * p.n, c.how});
        for (auto axis = static_cast<std::size_t>(batch.rank); axis-- > 0;) {
            index[forward_a] += batch.stride[0][axis];
            index[forward_b] += batch.stride[1][axis];
            if (++position[axis] < batch.extent[axis]) break;
            index[forward_a] -= batch.stride[0][axis] * static_cast<std::ptrdiff_t>(position[axis]);
            index[forward_b] -= batch.stride[1][axis] * static_cast<std::ptrdiff_t>(position[axis]);
            position[axis] = 0;
        }
    }
}

// Returns the buffer for the gradient of an operand that has `matrices` matrices, to which the products of
// `members` members contribute. If members share a matrix, fills the buffer with 0, and the products add to it.
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
