// A number that two runs of bytes share if they are the same, and otherwise hardly ever.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tally::detail {

std::uint64_t checksum_of(const void* data, std::size_t bytes);

}  // namespace tally::detail
