// What the engine asks of the device beside the CPU, which a module drives: it is loaded when it is first
// asked for, and where there is none the answer is in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tally/base/alignment.hpp"
#include "tally/kernels/device.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::peer {

// Which module, before the device is first asked for: "cuda", unless it is said; "pretend", by which the host
// computes what a GPU would; or a path. What TALLY_GPU_MODULE in the environment says counts more.
void select_backend(const std::string& module);

const std::string& unavailable_reason();  // why there is no such device; empty when there is one
std::string name();                       // of the module in use; "cuda" while there is none
std::uint64_t waits();                    // how often the host has waited for it

// Each throws an Error with those words when there is none.
const memory::Raw& raw();
void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes);
template <class S> const detail::Kernels<S>& kernels();

// For tests that look at results behind the engine's back: these waits are not counted; and memory that the
// host and the device can both use, for ever.
void wait_after_each_launch(bool wait);
void* pinned_alloc(std::size_t bytes);

}  // namespace tally::peer
