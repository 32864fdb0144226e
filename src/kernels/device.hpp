// Where an array lives. Chosen at run time; a build may know only the CPU.
#pragma once

#include <cstdint>
#include <iosfwd>

namespace tally {

// The host, and the GPU of a module.
enum class Device : std::uint8_t { cpu, cuda };

// As it is printed.
inline const char* to_string(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

// Here, so that who includes no stream pays for none.
template <class Character> auto& operator<<(std::basic_ostream<Character>& out, Device device) {
    return out << to_string(device);
}

bool available(Device device);  // true when this build and this machine have it

// How often the host has waited for it since the program began. Operations do not wait, reading values does.
std::uint64_t waits(Device device);

}  // namespace tally
