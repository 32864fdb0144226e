// Inside the ledger: each thread writes counters and free lists of its own, and whoever asks sums
// over the threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "tally/memory/arena.hpp"
#include "tally/memory/memory_account.hpp"

namespace tally::memory::detail {

// Never destroyed: when its thread ends it keeps its sums and waits for the next thread.
struct alignas(line) Shard {
    std::array<Account, devices> account;
    Shard* next = nullptr;
    bool taken = false;
};

// What the threads have in common, of one device.
struct Common {
    std::array<std::atomic<std::int64_t>, rows> peak{};  // of the sums

    std::mutex mutex;                    // guards all that follows
    std::atomic<std::size_t> budget{0};  // read without the lock: 0 means that nothing below is in use
    std::byte* base = nullptr;
    std::optional<Arena> arena;
    FreeLists cache;  // with a budget the cache is shared: any thread may need its blocks
    Counter<std::int64_t> cached;
};

}  // namespace tally::memory::detail
