// Dropout, whose mask belongs to the item and not to the batch.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>

#include "tally/array/array.hpp"
#include "tally/array/axes.hpp"
#include "tally/array/shape_checks.hpp"
#include "tally/autograd/record.hpp"

namespace tally {

// Whose masks are drawn: those of one layer, from item number `first` on. Items are numbered by whoever cuts
// batches, so that a micro-batch gets the masks that its items have in the full batch.
struct DropoutSeed {
    std::uint64_t seed = 0, layer = 0, first = 0;
};

// Each element of x (items, ...) is dropped with probability p, and otherwise divided by 1 - p. Nothing is
// kept: the way back draws the same mask again.
template <class S> Var<Array<S>> dropout(Var<Array<S>> x, double p, const DropoutSeed& of) {
    detail::check_mask(p, of.first, x.shape());
    if (p == 0) return x;
    const detail::DropoutMask mask{of.seed, of.layer, of.first,
                                   static_cast<std::uint64_t>(std::round(p * 0x1p32))};
    const auto items = static_cast<std::size_t>(x.shape()[0]);
    const std::size_t width = detail::stride_of(x.shape(), 0);
    const S scale = p == 1 ? S(0) : static_cast<S>(1 / (1 - p));
    Array<S> y = empty_like(x.value());
    kernels_for("dropout", x.value())
        .dropout(x.value().data(), mask, scale, {y.raw(), Write::set}, items, width);
    return record<"dropout">(
        std::move(y), save(),
        [mask, scale, items, width](GradInputs<Array<S>> to, const Array<S>& dy) {
            kernels_for("dropout", dy)
                .dropout(dy.data(), mask, scale, output_buffer(to.into(0)), items, width);
        },
        std::move(x));
}

}  // namespace tally
