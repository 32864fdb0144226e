#include "tally/array/statistics.hpp"

#include "tally/array/axes.hpp"

namespace tally::detail {

BatchNormDims plan_batch_norm(const Shape& x, const Shape& gain, const Shape& bias, const char* names) {
    if (x.rank() < 2) throw Error("batch_norm", "requires (items, features, ...); x is ", x, ", gain ", gain);
    const Shape features{x[1]};
    if (gain != features || bias != features)
        throw Error("batch_norm", names, " for x ", x, " must have the shape ", features, "; they have ",
                    gain, " and ", bias);
    return {static_cast<std::size_t>(x[0]), features.size(), stride_of(x, 1)};
}

}  // namespace tally::detail
