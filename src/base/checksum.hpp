// checksum_of() maps equal bytes to equal numbers, and different bytes almost always to different numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tally::detail {

std::uint64_t checksum_of(const void* data, std::size_t bytes);

}  // namespace tally::detail
