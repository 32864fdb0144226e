// Checks the shapes of products, and treats vectors and batches as matrices (m, k) times (k, n).
#include "tally/array/products.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tally/base/error.hpp"

namespace tally::detail {

namespace {

std::size_t to_size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

[[noreturn]] void reject(const std::string& what, const char* op, const Shape& a, const Shape& b,
                         bool transpose_a, bool transpose_b) {
    throw Error(op, what, ": ", a, transpose_a ? " transposed" : "", " x ", b,
                transpose_b ? " transposed" : "");
}

Shape batch_of(const Shape& shape) {
    return shape.rank() > 2 ? Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - 2)) : Shape();
}

// Plans a product with an operand that is a vector or a batch.
[[gnu::noinline]] ProductPlan plan_vectors_and_batches(const char* op, const Shape& a, const Shape& b,
                                                       bool transpose_a, bool transpose_b) {
    const auto fail = [&](const std::string& what) { reject(what, op, a, b, transpose_a, transpose_b); };
    if (a.rank() == 0 || b.rank() == 0) fail("a single number is not a matrix");
    if ((transpose_a && a.rank() == 1) || (transpose_b && b.rank() == 1)) fail("a vector has no transpose");

    // A vector on the left is one row. A vector on the right is one column.
    std::int64_t m = 1, k = a.begin()[a.rank() - 1], n = 1, rows_of_b = b.begin()[0];
    if (a.rank() > 1) {
        m = a.begin()[a.rank() - 2];
        if (transpose_a) std::swap(m, k);
    }
    if (b.rank() > 1) {
        rows_of_b = b.begin()[b.rank() - 2];
        n = b.begin()[b.rank() - 1];
        if (transpose_b) std::swap(rows_of_b, n);
    }
    if (k != rows_of_b) fail("inner sizes differ");

    ProductPlan plan({to_size(m), to_size(n), to_size(k), transpose_a, transpose_b}, Shape());
    if (a.rank() == 1 && b.rank() <= 2) {  // plan_product() handles a matrix times a vector
        if (b.rank() == 2) plan.shape = Shape{n};
        return plan;
    }
    const Shape batch_a = batch_of(a), batch_b = batch_of(b);
    Shape batch;
    if (!broadcasts(batch_a, batch_b, batch))
        fail("batches of " + to_string(batch_a) + " and " + to_string(batch_b) + " do not broadcast");
    std::vector<std::int64_t> extents(batch.begin(), batch.end());
    if (a.rank() > 1) extents.push_back(m);
    if (b.rank() > 1) extents.push_back(n);
    plan.shape = Shape(extents);
    if (batch_b.size() == 1 && !transpose_a)  // one matrix times the rows of all members
        plan.product.m *= batch.size();
    else
        plan.batch = broadcast_index(batch, batch_a, batch_b);
    return plan;
}

}  // namespace

ProductPlan plan_product(const char* op, const Shape& a, const Shape& b, const TransposeOptions& options) {
    const bool transpose_a = options.transpose_a, transpose_b = options.transpose_b;
    const bool is_column = b.rank() == 1 && !transpose_b;
    if (a.rank() != 2 || (b.rank() != 2 && !is_column))
        return plan_vectors_and_batches(op, a, b, transpose_a, transpose_b);
    const std::int64_t m = a.begin()[transpose_a ? 1 : 0], k = a.begin()[transpose_a ? 0 : 1],
                       n = is_column ? 1 : b.begin()[transpose_b ? 0 : 1];
    if (b.begin()[transpose_b ? 1 : 0] != k) reject("inner sizes differ", op, a, b, transpose_a, transpose_b);
    return {{to_size(m), to_size(n), to_size(k), transpose_a, transpose_b},
            is_column ? a.along(transpose_a ? 1 : 0) : Shape{m, n}};
}

LinearPlan plan_linear(const char* op, const Shape& x, const Shape& w, const Shape* bias) {
    if (w.rank() != 2) throw Error(op, "the weights must be a matrix (in, out); they are ", w, ", x is ", x);
    if (x.rank() == 0 || x.begin()[x.rank() - 1] != w.begin()[0])
        throw Error(op, "inner sizes differ: ", x, " x ", w);
    if (bias && (bias->rank() != 1 || bias->begin()[0] != w.begin()[1]))
        throw Error(op, "the bias of weights ", w, " must be (", w[1], "); it is ", *bias);
    const auto outer = static_cast<std::size_t>(x.rank()) - 1;
    std::int64_t extents[max_rank];
    std::copy_n(x.begin(), outer, extents);
    extents[outer] = w.begin()[1];
    std::size_t rows = 1;
    for (std::size_t axis = 0; axis < outer; ++axis) rows *= static_cast<std::size_t>(extents[axis]);
    return {rows, static_cast<std::size_t>(w.begin()[0]), static_cast<std::size_t>(w.begin()[1]),
            Shape(std::span(extents, outer + 1))};
}

}  // namespace tally::detail
