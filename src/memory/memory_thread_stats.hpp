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

// With several threads, a thread updates the peaks when it uses `hidden_growth` bytes more than its minimum since its
// last update. A peak can thus miss up to `hidden_growth` bytes of each thread.
inline constexpr std::int64_t hidden_growth = 64 << 10;

// Counts the memory of one thread on one device. The bytes in use are `acquired` minus `cached`, and the
// temporary bytes are the bytes in use minus `held`. The fast path changes only the byte count `cached`.
struct ThreadStats {
    Counter<std::int64_t> cached;
    std::int64_t min_cached = 0;  // if fewer bytes are cached, a peak may be exceeded and must be updated
    std::int64_t min_cached_for_all = 0, min_cached_for_temporary = 0;  // min_cached is the larger of these
    std::int64_t max_growth = 0;  // hidden_growth with several threads, 0 (no limit) with one thread
    // If true, the next change updates the peaks. Any thread may set the flag, but only the owner clears it.
    std::atomic<bool> check_peaks{true};
    Counter<std::uint64_t> allocations, fresh;
    std::atomic<std::int64_t> cache_limit{0};
    Counter<std::int64_t> acquired;  // from the device and other threads; negative if more was given to them
    std::array<Counter<std::int64_t>, memory_classes> held;  // 0 for temporary
    std::array<std::int64_t, memory_classes> max_held{};     // if more is held, a peak may be exceeded
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
        if (ref_count >> 32 != 0) hold(memory_class_of(ref_count), -bytes);  // not temporary
        if (max_growth != 0 && waiting - max_growth > std::min(min_cached_for_all, min_cached_for_temporary))
            limit_growth();
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
        limit_growth();
    }
    void hold(MemoryClass memory_class, std::int64_t bytes) {  // negative: not held any more
        held[static_cast<std::size_t>(memory_class)].add(bytes);
        min_cached_for_temporary -= bytes;
        limit_growth();
    }
    // Sets the growth at which this thread must update the peaks.
    void set_headroom(const Sums& headroom) {
        for (std::size_t row = 0; row < memory_classes; ++row)
            max_held[row] = held[row].get() + headroom[row];
        min_cached_for_all = cached.get() - headroom[all_classes];
        min_cached_for_temporary = cached.get() - headroom[temporary];
        limit_growth();
    }
    void limit_growth() {
        if (max_growth != 0) {
            for (std::size_t row = 0; row < memory_classes; ++row)
                max_held[row] = std::min(max_held[row], held[row].get() + max_growth);
            min_cached_for_all = std::max(min_cached_for_all, cached.get() - max_growth);
            min_cached_for_temporary = std::max(min_cached_for_temporary, cached.get() - max_growth);
        }
        min_cached = std::max(min_cached_for_all, min_cached_for_temporary);
    }
    bool exceeds_headroom(MemoryClass memory_class) const {
        const auto row = static_cast<std::size_t>(memory_class);
        return row == temporary ? cached.get() < min_cached : held[row].get() > max_held[row];
    }
    static constexpr auto temporary = static_cast<std::size_t>(MemoryClass::temporary);
};

Sums sums(Device device);  // over all threads; negative sums become 0

}  // namespace tally::memory::detail
