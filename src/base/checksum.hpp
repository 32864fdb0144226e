// checksum_of() maps equal bytes to equal numbers, and different bytes almost always to different numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tally::detail {

std::uint64_t checksum_of(const void* data, std::size_t bytes);

// Returns a checksum of every eighth block of 32 KiB, from block sample % 8 on; of all bytes up to 256 KiB.
std::uint64_t sampled_checksum_of(const void* data, std::size_t bytes, unsigned sample);

}  // namespace tally::detail
