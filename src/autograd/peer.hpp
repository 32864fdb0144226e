// What the engine asks of the device beside the CPU. src/gpu answers: with kernels, or in words when the
// build has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "autograd/device.hpp"
#include "autograd/kernels.hpp"
#include "autograd/memory_shard.hpp"

namespace tally::peer {

const std::string& absent();  // why there is no such device; empty when there is one
std::uint64_t waits();        // how often the host has waited for it

// Each throws an Error with those words when there is none.
const memory::detail::Raw& raw();
void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes);
template <class S>
const Kernels<S>& kernels();

}  // namespace tally::peer
