// What the kit asks of the engine.
#include "tally/lesson/devices.hpp"

#include "tally/kernels/kernels.hpp"
#include "tally/memory/peer.hpp"

namespace tally::lesson {

std::optional<Device> device_named(const std::string& name) {
    if (name == "cpu") return Device::cpu;
    if (name == "pretend") peer::choose(name);
    if (available(Device::cuda)) return Device::cuda;
    return name == "auto" ? std::optional(Device::cpu) : std::nullopt;
}

const std::string& no_cuda() { return peer::absent(); }

std::string name_of(Device device) { return device == Device::cpu ? to_string(device) : peer::name(); }

void use_threads(int threads) { set_threads(threads); }

void use_products(const std::string& name) {
    if (!name.empty()) set_products(detail::products_named(name));
}

}  // namespace tally::lesson
