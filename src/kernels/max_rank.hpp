// The maximum number of axes of an array. A GPU compiler reads this header, but not Shape.
#pragma once

namespace tally::detail {

inline constexpr int max_rank = 6;

}  // namespace tally::detail
