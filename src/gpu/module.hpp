// The module's side of memory/peer_table.hpp: a device becomes a table whose functions throw nothing.
#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>

#include "tally/base/error.hpp"
#include "tally/device/backend_abi.hpp"
#include "tally/kernels/kernel_slots.hpp"

namespace tally::gpu {

inline const peer::HostApi* the_host = nullptr;  // set before anything else of the module is called

inline const peer::HostApi& host() { return *the_host; }

struct Refused {};  // by the host, which has noted why

// A function as it is called from outside.
template <auto f> struct Noting;
template <class Result, class... Arguments, Result (*f)(Arguments...)> struct Noting<f> {
    static Result call(Arguments... arguments) noexcept {
        try {
            return f(arguments...);
        } catch (const Refused&) {
        } catch (const std::exception& error) {
            host().failed(error.what());
        } catch (...) {
            host().failed("the device failed without a word");
        }
        return Result();
    }
};
template <auto f> inline constexpr auto noting = &Noting<f>::call;

template <class On, class S> struct Bare {  // the kernels that throw
    static inline std::array<AnyFunction, kernel_slots<S>> slots{};
};

template <class On, class S> struct NotingSlots {
    template <std::size_t i> struct Slot {
        template <class... Arguments> using Function = void(Arguments...);
        template <class... Arguments> constexpr operator Function<Arguments...>*() const {
            return [](Arguments... arguments) { Noting<run<Arguments...>>::call(arguments...); };
        }
        template <class... Arguments> static void run(Arguments... arguments) {
            reinterpret_cast<Function<Arguments...>*>(Bare<On, S>::slots[i])(arguments...);
        }
    };
};

template <class On, class S> const Kernels<S>* noting_kernels(const Kernels<S>& bare) {
    Bare<On, S>::slots = slots_of(bare);
    static constexpr Kernels<S> made = each_slot<S, NotingSlots<On, S>::template Slot>();
    return &made;
}

// `Device` has static functions of those names; missing() is empty or says why there is no such device.
template <class Device> const peer::Table* table_of() {
    using On = typename Device::On;
    if (const std::string why = Device::missing(); !why.empty()) throw Error(why);
    static const peer::Table made{
        .name = Device::name,
        .raw = {noting<Device::allocate>, noting<Device::free>, noting<Device::fill>},
        .copy = noting<Device::copy>,
        .waits = noting<Device::waits>,
        .in_float = noting_kernels<On, float>(Device::template kernels<float>()),
        .in_double = noting_kernels<On, double>(Device::template kernels<double>()),
        .wait_after_each_launch = noting<Device::wait_after_each_launch>,
        .pinned_alloc = noting<Device::pinned_alloc>,
    };
    return &made;
}

template <class Device> const peer::Table* open(const peer::HostApi* library) noexcept {
    the_host = library;
    return Noting<table_of<Device>>::call();
}

}  // namespace tally::gpu

// The two names by which the library knows a module.
#define TALLY_MODULE(Device)                                                                \
    extern "C" {                                                                            \
    [[gnu::visibility("default")]] extern const tally::peer::AbiVersion tally_module_stamp; \
    const tally::peer::AbiVersion tally_module_stamp = tally::peer::stamp;                  \
    [[gnu::visibility("default")]] const tally::peer::Table* tally_module_open(             \
        const tally::peer::HostApi* host) {                                                 \
        return tally::gpu::open<Device>(host);                                              \
    }                                                                                       \
    }
