// How many axes an array may have; apart from Shape, so that a GPU's compiler need not read that.
#pragma once

namespace tally::detail {

inline constexpr int max_rank = 6;

}  // namespace tally::detail
