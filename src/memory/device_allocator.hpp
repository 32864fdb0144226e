// raw() returns the allocation functions of a device, which do not count the allocated bytes.
#pragma once

#include "tally/base/alignment.hpp"
#include "tally/kernels/device.hpp"
#include "tally/memory/pool.hpp"

namespace tally::memory {

// AddressSanitizer detects a use after free only in memory that is really freed, and not in a cached buffer.
// AddressSanitizer detects an overrun only if the size of the allocation is not rounded up.
inline constexpr bool caching = !TALLY_ASAN;

const Raw& raw(Device device);  // throws Error if the device is not available

}  // namespace tally::memory
