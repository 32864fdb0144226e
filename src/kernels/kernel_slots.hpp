// each_slot() builds a kernel table from one template, for code that treats all kernels in the same way.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "tally/kernels/kernels.hpp"

namespace tally::detail {

using AnyFunction = void (*)();  // the caller casts this back to the type of the slot

template <class S> inline constexpr std::size_t kernel_slots = sizeof(Kernels<S>) / sizeof(AnyFunction);

template <class Array, std::size_t from, template <std::size_t> class Slot, std::size_t... i>
constexpr Array some_slots(std::index_sequence<i...>) {
    return Array{{Slot<from + i>()...}};
}

// Returns a table whose slot i is Slot<i>(). Slot must convert to every type of function pointer.
template <class S, template <std::size_t> class Slot> constexpr Kernels<S> each_slot() {
    using K = Kernels<S>;
    constexpr std::size_t unary = std::tuple_size_v<UnaryOps>, binary = std::tuple_size_v<BinaryOps>;
    constexpr std::size_t first = 2 * unary + 3 * binary;  // the first slot after the elementwise kernels
    constexpr auto each_unary = std::make_index_sequence<unary>();
    constexpr auto each_binary = std::make_index_sequence<binary>();
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
        return K{some_slots<decltype(K::map), 0, Slot>(each_unary),
                 some_slots<decltype(K::map_back), unary, Slot>(each_unary),
                 some_slots<decltype(K::zip), 2 * unary, Slot>(each_binary),
                 some_slots<decltype(K::zip_back_a), 2 * unary + binary, Slot>(each_binary),
                 some_slots<decltype(K::zip_back_b), 2 * unary + 2 * binary, Slot>(each_binary),
                 Slot<first + i>()...};
    }
    (std::make_index_sequence<kernel_slots<S> - first>());
}

template <class S> std::array<AnyFunction, kernel_slots<S>> slots_of(const Kernels<S>& table) {
    std::array<AnyFunction, kernel_slots<S>> slots;
    std::memcpy(slots.data(), &table, sizeof table);
    return slots;
}

}  // namespace tally::detail
