// checksum_of() returns equal numbers for equal bytes, and almost always other numbers for other bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tally::detail {

std::uint64_t checksum_of(const void* data, std::size_t bytes);

}  // namespace tally::detail
