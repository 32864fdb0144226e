// The only questions the kit asks the engine: which device there is, and how many threads it may use.
#pragma once

#include <optional>
#include <string>

#include "autograd/device.hpp"

namespace tally::lesson {

std::optional<Device> device_named(const std::string& name);  // "cpu", "cuda", "auto"; nothing: not there
void use_threads(int threads);

}  // namespace tally::lesson
