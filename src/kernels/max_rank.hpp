// Defines the maximum number of axes of an array. A GPU compiler can read this header, but not shape.hpp.
#pragma once

namespace tally::detail {

inline constexpr int max_rank = 6;

}  // namespace tally::detail
