// The maximum number of axes of an array. A separate header, so that a GPU compiler need not read Shape.
#pragma once

namespace tally::detail {

inline constexpr int max_rank = 6;

}  // namespace tally::detail
