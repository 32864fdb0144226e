// What the kit asks of the engine.
#include "lesson/devices.hpp"

#include "autograd/kernels.hpp"
#include "autograd/peer.hpp"

namespace tally::lesson {

std::optional<Device> device_named(const std::string& name) {
    const bool has_cuda = name != "cpu" && available(Device::cuda);
    if (name == "cuda" && !has_cuda) return std::nullopt;
    return has_cuda ? Device::cuda : Device::cpu;
}

const std::string& no_cuda() { return peer::absent(); }

void use_threads(int threads) { set_threads(threads); }

}  // namespace tally::lesson
