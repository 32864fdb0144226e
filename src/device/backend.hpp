// Declares the interface to the device module, a shared library that the first use of the device loads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tally/base/alignment.hpp"
#include "tally/kernels/device.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::backend {

// Selects the module: "cuda" (the default), "simulated" (computes on the host), or a path. Call select()
// before the device is first used. The environment variable TALLY_GPU_MODULE overrides this choice.
void select(const std::string& module);

const std::string& unavailable_reason();  // why no module can be used; empty if one is loaded
std::string name();                       // of the module in use; "cuda" before one is in use
std::uint64_t waits();                    // how often the host has waited for the device

// The functions below throw an Error with unavailable_reason() if no module can be used.
const memory::Raw& raw();
void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes);
template <class S> const detail::Kernels<S>& kernels();

// Makes the host wait after each launch, so that tests can read device memory. waits() ignores these waits.
void wait_after_each_launch(bool wait);
void* pinned_alloc(std::size_t bytes);  // memory for host and device that is never freed

}  // namespace tally::backend
