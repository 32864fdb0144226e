// Defines the binary interface between the library and a device module, as two tables of functions. No
// exception crosses the interface. The library and the module record an error by HostApi::failed. The library
// throws the recorded error after the call has returned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tally/base/alignment.hpp"
#include "tally/base/version.hpp"
#include "tally/device/backend.hpp"
#include "tally/kernels/device.hpp"
#include "tally/kernels/kernels.hpp"
#include "tally/memory/memory.hpp"

namespace tally::backend {

// Contains the functions of the library that a module may call.
struct HostApi {
    memory::detail::Storage* (*allocate)(std::size_t bytes) noexcept;  // records an Error if it returns null
    void (*unref)(memory::detail::Storage* storage) noexcept;
    std::size_t (*budget)() noexcept;
    Products (*products)() noexcept;
    void (*failed)(const char* words) noexcept;  // records an Error
};

// Contains the functions of a device module. If a function fails, it records the error and returns.
struct Table {
    const char* name;  // "cuda", "simulated"
    memory::Raw raw;
    void (*copy)(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes);
    std::uint64_t (*waits)();
    const detail::Kernels<float>* in_float;
    const detail::Kernels<double>* in_double;

    void (*wait_after_each_launch)(bool);
    void* (*pinned_alloc)(std::size_t bytes);
};

// The library checks the AbiVersion of a module before any call. `version` must stay the first member.
struct AbiVersion {
    char version[16];
    std::uint32_t revision;  // raised when a table changes its meaning but not its size
    std::uint32_t host, table, in_float, in_double;  // sizes in bytes

    bool operator==(const AbiVersion&) const = default;
};

#define TALLY_IN_WORDS(x) #x
#define TALLY_DOTTED(major, minor, patch) \
    TALLY_IN_WORDS(major) "." TALLY_IN_WORDS(minor) "." TALLY_IN_WORDS(patch)
inline constexpr AbiVersion stamp{TALLY_DOTTED(TALLY_VERSION_MAJOR, TALLY_VERSION_MINOR, TALLY_VERSION_PATCH),
                                  1,
                                  sizeof(HostApi),
                                  sizeof(Table),
                                  sizeof(detail::Kernels<float>),
                                  sizeof(detail::Kernels<double>)};
#undef TALLY_DOTTED
#undef TALLY_IN_WORDS

// Each module exports two symbols. `open` returns a table, or records an error and returns null.
inline constexpr const char* stamp_name = "tally_module_stamp";
inline constexpr const char* open_name = "tally_module_open";
using Open = const Table* (*)(const HostApi*);

}  // namespace tally::backend
