// Inside the ledger: each thread writes counters and free lists of its own, and whoever asks sums over the
// threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>

#include "autograd/arena.hpp"
#include "autograd/memory.hpp"

namespace tally::memory::detail {

inline constexpr std::size_t alignment = 64;
inline constexpr int devices = 2;
inline constexpr int all_classes = memory_classes;  // the row of the sum over the classes
inline constexpr int rows = memory_classes + 1;

inline constexpr std::size_t rounded_up(std::size_t bytes) {
    return (bytes + alignment - 1) & ~(alignment - 1);
}

// Written by one thread only, read by anyone: no read-modify-write, hence no bus lock.
template <class Number>
class Counter {
public:
    Number get() const { return value_.load(std::memory_order_relaxed); }
    void set(Number value) { value_.store(value, std::memory_order_relaxed); }
    void add(Number value) { set(get() + value); }

private:
    std::atomic<Number> value_{};
};

// Blocks that wait to be used again, found by their exact size; the last to come is the first to go.
class FreeLists {
public:
    Storage* take(std::size_t bytes) {
        if (bytes <= small) {
            Storage*& head = small_[bytes / alignment];
            Storage* const storage = head;
            if (storage != nullptr) head = storage->next_free;
            return storage;
        }
        for (Storage** at = &large_[bucket(bytes)]; *at != nullptr; at = &(*at)->next_free) {
            if (Storage* const storage = *at; storage->bytes == bytes) {
                *at = storage->next_free;
                return storage;
            }
        }
        return nullptr;
    }

    void put(Storage* storage, std::size_t bytes) {
        Storage*& head = bytes <= small ? small_[bytes / alignment] : large_[bucket(bytes)];
        storage->next_free = head;
        head = storage;
    }

    template <class Visit>
    void for_each(Visit visit) const {
        const auto along = [&visit](Storage* storage) {
            while (storage != nullptr) {
                Storage* const next = storage->next_free;  // `visit` may free it
                visit(storage);
                storage = next;
            }
        };
        for (Storage* head : small_) along(head);
        for (Storage* head : large_) along(head);
    }

    void clear() {
        small_ = {};
        large_ = {};
    }

private:
    static constexpr std::size_t small = 64 * 1024;  // up to here every size has its list; list 0 stays empty
    static constexpr std::size_t buckets = 64;

    static std::size_t bucket(std::size_t bytes) {
        return (bytes / alignment * 0x9E3779B97F4A7C15u) >> (std::numeric_limits<std::size_t>::digits - 6);
    }

    std::array<Storage*, small / alignment + 1> small_{};
    std::array<Storage*, buckets> large_{};
};

// One device's page in one thread's book.
struct Account {
    static constexpr std::int64_t always = std::numeric_limits<std::int64_t>::min();

    struct Row {
        Counter<std::int64_t> bytes;              // negative where others' buffers were given back
        std::atomic<std::int64_t> alarm{always};  // above this, the device's peak may be exceeded
    };
    std::array<Row, rows> row;
    Counter<std::int64_t> cached;
    std::atomic<std::int64_t> cache_limit{0};
    Counter<std::uint64_t> allocations, fresh;
    FreeLists cache;
};

// Never destroyed: when its thread ends it keeps its sums and waits for the next thread.
struct alignas(alignment) Shard {
    std::array<Account, devices> account;
    Shard* next = nullptr;
    bool taken = false;
};

// How raw memory of a device is had. A second device fills in a second one.
struct Raw {
    void* (*grab)(std::size_t bytes);  // 64-byte aligned; null when there is none
    void (*give)(void* data, std::size_t bytes);
    void (*fill)(void* data, unsigned char byte, std::size_t bytes);
};

// What the threads have in common, of one device.
struct Common {
    std::array<std::atomic<std::int64_t>, rows> peak{};

    std::mutex mutex;                    // guards all that follows
    std::atomic<std::size_t> budget{0};  // read without the lock: 0 means that nothing below is in use
    std::byte* base = nullptr;
    std::optional<Arena> arena;
    FreeLists cache;  // with a budget the cache is shared: any thread may need its blocks
    Counter<std::int64_t> cached;
};

}  // namespace tally::memory::detail
