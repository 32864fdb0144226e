// table_of() builds the backend::Table of a device module. The functions in this table do not throw.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <string>

#include "tally/base/error.hpp"
#include "tally/device/backend_abi.hpp"
#include "tally/kernels/kernel_slots.hpp"

namespace tally::gpu {

inline const backend::HostApi* the_host = nullptr;  // set by open(), the first call

inline const backend::HostApi& host() { return *the_host; }

struct HostError {};  // thrown after an error of the host, which has stored the message

// Calls f and passes its exceptions to the host, because exceptions must not leave the module.
template <auto f> struct Catching;
template <class Result, class... Arguments, Result (*f)(Arguments...)> struct Catching<f> {
    static Result call(Arguments... arguments) noexcept {
        try {
            return f(arguments...);
        } catch (const HostError&) {
        } catch (const std::exception& error) {
            host().failed(error.what());
        } catch (...) {
            host().failed("the device threw an unknown exception");
        }
        return Result();
    }
};
template <auto f> inline constexpr auto catching = &Catching<f>::call;

template <class On, class S> struct ThrowingKernels {
    static inline std::array<AnyFunction, kernel_slots<S>> slots{};
};

template <class On, class S> struct CatchingSlots {
    template <std::size_t i> struct Slot {
        template <class... Arguments> using Function = void(Arguments...);
        template <class... Arguments> constexpr operator Function<Arguments...>*() const {
            return [](Arguments... arguments) { Catching<run<Arguments...>>::call(arguments...); };
        }
        template <class... Arguments> static void run(Arguments... arguments) {
            reinterpret_cast<Function<Arguments...>*>(ThrowingKernels<On, S>::slots[i])(arguments...);
        }
    };
};

template <class On, class S> const Kernels<S>* catching_kernels(const Kernels<S>& throwing) {
    ThrowingKernels<On, S>::slots = slots_of(throwing);
    static constexpr Kernels<S> made = each_slot<S, CatchingSlots<On, S>::template Slot>();
    return &made;
}

// Builds the table from static functions of `Device`. Throws if Device::missing() returns a message.
template <class Device> const backend::Table* table_of() {
    using On = typename Device::On;
    if (const std::string why = Device::missing(); !why.empty()) throw Error(why);
    static const backend::Table made{
        .name = Device::name,
        .raw = {catching<Device::allocate>, catching<Device::free>, catching<Device::fill>},
        .copy = catching<Device::copy>,
        .waits = catching<Device::waits>,
        .in_float = catching_kernels<On, float>(Device::template kernels<float>()),
        .in_double = catching_kernels<On, double>(Device::template kernels<double>()),
        .wait_after_each_launch = catching<Device::wait_after_each_launch>,
        .pinned_alloc = catching<Device::pinned_alloc>,
    };
    return &made;
}

template <class Device> const backend::Table* open(const backend::HostApi* library) noexcept {
    the_host = library;
    return Catching<table_of<Device>>::call();
}

}  // namespace tally::gpu

// Defines the two symbols that the library looks up in a module.
#define TALLY_MODULE(Device)                                                                   \
    extern "C" {                                                                               \
    [[gnu::visibility("default")]] extern const tally::backend::AbiVersion tally_module_stamp; \
    const tally::backend::AbiVersion tally_module_stamp = tally::backend::stamp;               \
    [[gnu::visibility("default")]] const tally::backend::Table* tally_module_open(             \
        const tally::backend::HostApi* host) {                                                 \
        return tally::gpu::open<Device>(host);                                                 \
    }                                                                                          \
    }
