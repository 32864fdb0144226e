// Each array is stored on a Device, which is chosen at run time. Some builds support only the CPU.
#pragma once

#include <cstdint>
#include <iosfwd>

namespace tally {

// The enum Device names the device whose memory stores an array. `cuda` is the GPU of a device module.
enum class Device : std::uint8_t { cpu, cuda };

inline const char* to_string(Device device) {  // "cpu" or "cuda"
    return device == Device::cpu ? "cpu" : "cuda";
}

// This operator is a template, so that this header need not include <ostream>.
template <class Character> auto& operator<<(std::basic_ostream<Character>& out, Device device) {
    return out << to_string(device);
}

bool available(Device device);  // returns whether this build and this machine have the device

namespace detail {
// Returns how often the host has waited for the device. Operations do not wait, but reading values does.
std::uint64_t waits(Device device);
}  // namespace detail

}  // namespace tally
