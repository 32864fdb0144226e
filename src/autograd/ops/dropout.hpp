// dropout() draws an item's mask from its index in the full batch, so micro-batches do not change the mask.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#include "tally/array/array.hpp"
#include "tally/array/axes.hpp"
#include "tally/array/shape_checks.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

namespace detail {
// A DropoutKey selects the dropout masks of one layer. `first_item` is the index of the micro-batch's first
// item in the full batch, so that the masks do not depend on the split into micro-batches.
struct DropoutKey {
    std::uint64_t seed = 0, stream = 0, first_item = 0;
};
}  // namespace detail

// Sets each element of x (items, ...) to 0 with probability p, and divides the remaining elements by 1 - p.
// The backward function draws the same mask again, so the operation saves nothing.
template <class S> Var<Array<S>> dropout(Var<Array<S>> x, double p, const detail::DropoutKey& key) {
    detail::require_dropout_args(p, key.first_item, x.shape());
    if (p == 0) return x;
    const detail::DropoutMask mask{key.seed, key.stream, key.first_item,
                                   static_cast<std::uint64_t>(std::round(p * 0x1p32))};
    const auto items = static_cast<std::size_t>(x.shape()[0]);
    const std::size_t width = detail::stride_of(x.shape(), 0);
    const S scale = p == 1 ? S(0) : static_cast<S>(1 / (1 - p));
    Array<S> y = Array<S>::empty_like(x.value());
    detail::kernels_for("dropout", x.value())
        .dropout(x.value().data(), mask, scale, {y.raw(), Write::set}, items, width);
    return record<"dropout">(
        std::move(y), save(),
        [mask, scale, items, width](GradInputs<Array<S>> to, const Array<S>& dy) {
            detail::kernels_for("dropout", dy)
                .dropout(dy.data(), mask, scale, detail::grad_buffer(to.into(0)), items, width);
        },
        std::move(x));
}

}  // namespace tally
