// Each thread has its own memory counters and free lists. Statistics are sums over all threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "tally/memory/arena.hpp"
#include "tally/memory/memory_thread_stats.hpp"

namespace tally::memory::detail {

// When a thread ends, its `ThreadCache` remains with all counters, and a new thread may reuse the cache.
struct alignas(line) ThreadCache {
    std::array<ThreadStats, devices> account;
    ThreadCache* next = nullptr;
    bool taken = false;
};

// The state of one device, which all threads share.
struct DeviceState {
    std::array<std::atomic<std::int64_t>, rows> peak{};  // of the sums over all threads
    std::mutex setting_limits;                           // only one thread at a time sets its limits

    std::mutex mutex;                    // guards the members below
    std::atomic<std::size_t> budget{0};  // also read without the mutex; 0: members below are unused
    std::byte* base = nullptr;
    std::optional<Arena> arena;
    FreeLists cache;  // shared if there is a budget, because any thread may need the blocks
    Counter<std::int64_t> cached;

    bool in_arena(const Storage* storage) const {
        const auto* data = static_cast<const std::byte*>(storage->data);
        return base != nullptr && std::less_equal<>()(base, data) &&
               std::less<>()(data, base + budget.load());
    }
    std::size_t place(const Storage* storage) const {
        return static_cast<std::size_t>(static_cast<const std::byte*>(storage->data) - base);
    }
    void return_to_arena(Storage* storage) {
        arena->give(place(storage), storage->bytes);
        delete storage;
    }
    void drop_cache() {
        cache.for_each([this](Storage* storage) { return_to_arena(storage); });
        cache.clear();
        cached.set(0);
    }
};

[[gnu::cold]] void record_checksum(Storage* storage);
[[noreturn, gnu::cold]] void out_of_memory(std::size_t asked, Device device, std::size_t cached,
                                           std::size_t free, std::size_t largest);

}  // namespace tally::memory::detail
