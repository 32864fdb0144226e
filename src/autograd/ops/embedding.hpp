// embedding() looks up a row of a table for each index.
#pragma once

#include <concepts>
#include <optional>
#include <utility>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

// Returns the row weight[i] for each index i. The shape of `weight` is (entries, ...). The shape of the
// result is the shape of `indices` followed by the shape of a row. The row with index `padding` receives no
// gradient. A negative `padding` counts from the last row.
template <class S> Var<Array<S>> embedding(Var<Array<S>> weight, const Array<std::int32_t>& indices,
                                           std::optional<std::int64_t> padding = {}) {
    const Shape& table = weight.shape();
    if (table.rank() == 0) throw Error("[embedding] a single number has no rows");
    detail::require_valid_rows("embedding", indices, table);
    if (padding && (*padding < -table[0] || *padding >= table[0]))
        throw Error("embedding", "the padding ", *padding, " is outside the rows of ", table);

    const auto count = indices.size(), height = static_cast<std::size_t>(table[0]);
    const auto width = detail::stride_of(table, 0);
    std::vector<std::int64_t> extents(indices.shape().begin(), indices.shape().end());
    extents.insert(extents.end(), table.begin() + 1, table.end());
    const Device device = weight.value().device();
    Array<std::int32_t> on_device = indices.to(device);
    Array<S> y = Array<S>::empty(Shape(extents), device);
    detail::kernels_for("embedding", weight.value())
        .rows(weight.value().data(), on_device.data(), y.raw(), count, width);
    if (padding) {
        std::vector<std::int32_t> without_padding = indices.to_vector();
        for (std::int32_t& index : without_padding)
            if (index == (*padding + table[0]) % table[0]) index = -1;
        on_device = Array<std::int32_t>(indices.shape(), without_padding, device);
    }
    return record<"embedding">(
        std::move(y), save(on_device),
        [count, height, width](GradInputs<Array<S>> to, const Array<S>& dy,
                               const Array<std::int32_t>& saved) {
            detail::kernels_for("embedding", dy)
                .rows_back(dy.data(), saved.data(), detail::grad_buffer(to.into(0)), count, height, width);
        },
        std::move(weight));
}

// Rejects a padding that is not an integer.
template <class S>
void embedding(Var<Array<S>>, const Array<std::int32_t>&, std::floating_point auto) = delete;

}  // namespace tally
