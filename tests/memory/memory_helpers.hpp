// Helpers of the memory tests. A Budget object sets a budget of memory until the object is destroyed.
#pragma once

#include <cstddef>
#include <string>

#include "tally/memory/memory.hpp"
#include "tally/memory/pool.hpp"

namespace tally::test {

inline constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
inline constexpr bool caching = pool::enabled;  // AddressSanitizer disables the pool and caching

inline memory::detail::Storage* allocate(std::size_t bytes) {
    return memory::detail::allocate(bytes, Device::cpu);
}

struct Budget {
    explicit Budget(std::size_t bytes, Device device = Device::cpu) : of(device) {
        memory::set_budget(bytes, of);
    }
    Budget(const Budget&) = delete;
    Budget& operator=(const Budget&) = delete;
    ~Budget() {
        try {
            memory::set_budget(0, of);
        } catch (const Error&) {  // after a failed assertion, buffers may be in use
        }
        memory::reset_peak(of);
    }
    Device of;
};

inline std::string message_of_failed(std::size_t bytes) {
    try {
        memory::detail::unref(allocate(bytes));
    } catch (const OutOfMemory& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace tally::test
