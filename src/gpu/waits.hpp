// How often the host has waited for the GPU: a group of micro-batches should not make it wait at all.
#pragma once

#include <cstdint>

namespace tally::gpu {

std::uint64_t waits();

}  // namespace tally::gpu
