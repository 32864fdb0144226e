// The only questions the kit asks the engine: which device there is, why not, and how many threads
// it may use, and for which products.
#pragma once

#include <optional>
#include <string>

#include "tally/kernels/device.hpp"

namespace tally::lesson {

std::optional<Device> device_named(
    const std::string& name);        // "cpu", "cuda", "pretend", "auto"; nothing: not there
const std::string& no_cuda();        // why not; empty when there is one
std::string name_of(Device device);  // "pretend" where that is the device beside the CPU
void use_threads(int threads);
void use_products(const std::string& name);  // "ordered" or "blas"; empty changes nothing

}  // namespace tally::lesson
