// When the host waits for the GPU, and how often: a group of micro-batches should not make it wait at all.
#pragma once

#include <cstdint>

namespace tally::gpu {

std::uint64_t waits();

// For tests that look at results behind the engine's back, and to find the launch that failed. Not counted.
void wait_after_each_launch(bool wait);

}  // namespace tally::gpu
