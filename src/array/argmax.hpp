// argmax() returns the positions of the largest elements along an axis.
#pragma once

#include <cstdint>

#include "tally/array/array.hpp"
#include "tally/array/axes.hpp"

namespace tally {

// Returns the index of the first largest element along the axis. A NaN counts as larger than every number.
template <class S>
Array<std::int32_t> argmax(const Array<S>& x, std::int64_t axis, const detail::ReduceOptions& options = {}) {
    const auto r = detail::plan_reduction("argmax", x.shape(), {axis}, options.keepdims);
    detail::require_nonempty_reduction("argmax", r, x.shape());
    auto y = Array<std::int32_t>::empty(r.shape, x.device());
    if (y.size()) detail::kernels_for("argmax", x).argmax(x.data(), y.raw(), r.dims);
    return y;
}

}  // namespace tally
