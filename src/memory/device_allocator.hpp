// raw() returns the allocation functions of a device. These functions do not count the memory.
#pragma once

#include <cstddef>

#include "tally/base/alignment.hpp"
#include "tally/kernels/device.hpp"
#include "tally/memory/pool.hpp"

namespace tally::memory {

// AddressSanitizer detects a use after free only in memory that is really freed, and an overrun only if the
// allocation is not rounded up.
inline constexpr bool caching = !TALLY_ASAN;

const Raw& raw(Device device);  // throws Error if the device is not available

}  // namespace tally::memory
