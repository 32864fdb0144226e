// Inside the ledger: each thread writes counters and free lists of its own, and whoever asks sums
// over the threads.
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

// Never destroyed: when its thread ends it keeps its sums and waits for the next thread.
struct alignas(line) ThreadCache {
    std::array<ThreadStats, devices> account;
    ThreadCache* next = nullptr;
    bool taken = false;
};

// What the threads have in common, of one device.
struct DeviceState {
    std::array<std::atomic<std::int64_t>, rows> peak{};  // of the sums

    std::mutex mutex;                    // guards all that follows
    std::atomic<std::size_t> budget{0};  // read without the lock: 0 means that nothing below is in use
    std::byte* base = nullptr;
    std::optional<Arena> arena;
    FreeLists cache;  // with a budget the cache is shared: any thread may need its blocks
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

[[gnu::cold]] void record_checksum(Storage* storage);  // of what the first of its rules saves
[[noreturn, gnu::cold]] void out_of_memory(std::size_t asked, Device device, std::size_t cached,
                                           std::size_t free, std::size_t largest);

}  // namespace tally::memory::detail
