// The memory that a device has, before it is counted.
#pragma once

#include <cstddef>

#include "tally/base/alignment.hpp"
#include "tally/kernels/device.hpp"
#include "tally/memory/pool.hpp"

namespace tally::memory {

// AddressSanitizer sees a use after free only in memory really freed, and an overrun of one byte only where no
// more was had.
inline constexpr bool caching = !TALLY_ASAN;

const Raw& raw(Device device);  // an Error where there is no such device

}  // namespace tally::memory
