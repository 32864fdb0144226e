// Defines the memory counters and the free lists of one thread for one device.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "tally/base/alignment.hpp"
#include "tally/memory/memory.hpp"

namespace tally::memory::detail {

inline constexpr int devices = 2;
inline constexpr int all_classes = memory_classes;  // the index of the sum over all classes
inline constexpr int rows = memory_classes + 1;

// All threads read a `Counter`. Only one thread writes it, so add() needs no atomic read-modify-write.
template <class Number> class Counter {
public:
    Number get() const { return value_.load(std::memory_order_acquire); }
    void set(Number value) { value_.store(value, std::memory_order_release); }
    void add(Number value) { set(get() + value); }

private:
    std::atomic<Number> value_{};
};

// Each small size has its own list of free blocks. The block that was freed last is reused first.
class FreeLists {
public:
    Storage* take(std::size_t bytes) {
        if (bytes <= small) {
            Storage*& head = small_[bytes / line];
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
        Storage*& head = bytes <= small ? small_[bytes / line] : large_[bucket(bytes)];
        storage->next_free = head;
        head = storage;
    }

    template <class Visit> void for_each(Visit visit) const {
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
    static constexpr std::size_t small = 64 * 1024;  // each size up to this has its own list; list 0 is empty
    static constexpr std::size_t buckets = 64;

    static std::size_t bucket(std::size_t bytes) {
        return (bytes / line * 0x9E3779B97F4A7C15u) >> (std::numeric_limits<std::size_t>::digits - 6);
    }

    std::array<Storage*, small / line + 1> small_{};
    std::array<Storage*, buckets> large_{};
};

// The bytes in each memory class, followed by the bytes in all memory classes together.
using Sums = std::array<std::int64_t, rows>;

// A thread may use memory up to its limits without updating the peaks. The limits of all threads together exceed a peak
// by at most `hidden_growth` bytes per thread, so a peak can miss as much.
inline constexpr std::int64_t hidden_growth = 64 << 10;

struct ThreadStats;
// Raises each peak that is below its sum, and sets new limits for the thread that calls it.
void update_peaks(ThreadStats& account, Device device);

// Counts the memory of one thread on one device. The bytes in use are `acquired` minus `cached`, and the
// temporary bytes are the bytes in use minus `held`. The fast path changes only the byte count `cached`.
struct ThreadStats {
    Counter<std::int64_t> cached;
    std::int64_t min_cached = 0;  // if fewer bytes are cached, the peaks must be updated
    std::int64_t min_cached_for_all = 0, min_cached_for_temporary = 0;  // min_cached is the larger of these
    // If true, the limits are not valid, and the next change updates the peaks. Only the owner clears the flag.
    std::atomic<bool> check_peaks{true};
    Counter<std::uint64_t> allocations, fresh;
    std::atomic<std::int64_t> cache_limit{0};
    Counter<std::int64_t> acquired;  // from the device and other threads; negative if more was given to them
    std::array<Counter<std::int64_t>, memory_classes> held;  // 0 for temporary
    std::array<Counter<std::int64_t>, rows> limit;           // of the bytes in use
    FreeLists cache;

    // Counts an allocation from the cache. Returns whether the peaks must be updated.
    bool on_alloc(Storage* storage, std::size_t bytes) {
        const std::int64_t waiting = cached.get() - static_cast<std::int64_t>(bytes);
        cached.set(waiting);
        allocations.add(1);
        storage->ref_count.store(1, std::memory_order_relaxed);
        storage->version.store(0, std::memory_order_relaxed);
        storage->replaced_by_thread.store(0, std::memory_order_relaxed);
        storage->has_checksum.store(false, std::memory_order_relaxed);
        return waiting < min_cached || check_peaks.load(std::memory_order_relaxed);
    }
    // Puts a buffer into the cache and counts it. Returns false if the buffer is empty or the cache is full.
    bool on_free(Storage* storage) {
        const auto bytes = static_cast<std::int64_t>(storage->bytes);
        const std::int64_t waiting = cached.get() + bytes;
        if (bytes == 0 || waiting > cache_limit.load(std::memory_order_relaxed)) return false;
        cached.set(waiting);
        const std::uint64_t ref_count = storage->ref_count.load(std::memory_order_relaxed);
        if (ref_count >> 32 != 0)
            move(memory_class_of(ref_count), MemoryClass::temporary, bytes, storage->device);
        cache.put(storage, storage->bytes);
        return true;
    }

    Sums sums() const {
        Sums now{};
        std::int64_t other = 0;
        for (std::size_t row = 0; row < memory_classes; ++row) other += now[row] = held[row].get();
        std::int64_t all = acquired.get(), before = 0, waiting = 0;
        do {  // reads `cached` and `acquired` as of the same moment
            before = all;
            waiting = cached.get();
            all = acquired.get();
        } while (all != before);
        now[all_classes] = all - waiting;
        now[temporary] = now[all_classes] - other;
        return now;
    }
    void add_acquired(std::int64_t bytes) {  // negative: bytes given back
        acquired.add(bytes);
        min_cached_for_all += bytes;
        min_cached_for_temporary += bytes;
        set_min_cached();
    }
    // A free counts the bytes as cached before it moves them. Until then, too few temporary bytes seem to be in use. A
    // thread that reads them while check_peaks is set sets its limits too high. update_peaks() then corrects them.
    void move(MemoryClass from, MemoryClass to, std::int64_t bytes, Device device) {
        hold(to, bytes);  // first, so that other threads never see too many temporary bytes
        hold(from, -bytes);
        set_min_cached();
        if (exceeds_limit(to) || check_peaks.load(std::memory_order_relaxed)) [[unlikely]]
            update_peaks(*this, device);
    }
    void hold(MemoryClass memory_class, std::int64_t bytes) {
        if (memory_class == MemoryClass::temporary) return;
        held[static_cast<std::size_t>(memory_class)].add(bytes);
        min_cached_for_temporary -= bytes;
    }
    // Sets how much this thread may grow before it must update the peaks.
    void set_headroom(const Sums& headroom) {
        const Sums now = sums();
        for (std::size_t row = 0; row < now.size(); ++row) limit[row].set(now[row] + headroom[row]);
        min_cached_for_all = cached.get() - headroom[all_classes];
        min_cached_for_temporary = cached.get() - headroom[temporary];
        set_min_cached();
    }
    void set_min_cached() { min_cached = std::max(min_cached_for_all, min_cached_for_temporary); }
    bool exceeds_limit(MemoryClass memory_class) const {
        const auto row = static_cast<std::size_t>(memory_class);
        return row == temporary ? cached.get() < min_cached : held[row].get() > limit[row].get();
    }
    static constexpr auto temporary = static_cast<std::size_t>(MemoryClass::temporary);
};

Sums sums(Device device);  // over all threads; negative sums become 0

}  // namespace tally::memory::detail
