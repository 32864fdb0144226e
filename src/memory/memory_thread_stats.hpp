// Inside the ledger: the page on which one thread counts the buffers of one device, and where those wait that
// may be used again.
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
inline constexpr int all_classes = memory_classes;  // the row of the sum over the classes
inline constexpr int rows = memory_classes + 1;

// Written by one thread only, read by anyone: no read-modify-write, hence no bus lock.
template <class Number> class Counter {
public:
    Number get() const { return value_.load(std::memory_order_acquire); }
    void set(Number value) { value_.store(value, std::memory_order_release); }
    void add(Number value) { set(get() + value); }

private:
    std::atomic<Number> value_{};
};

// Blocks that wait to be used again, found by their exact size; the last to come is the first to go.
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
    static constexpr std::size_t small = 64 * 1024;  // up to here every size has its list; list 0 stays empty
    static constexpr std::size_t buckets = 64;

    static std::size_t bucket(std::size_t bytes) {
        return (bytes / line * 0x9E3779B97F4A7C15u) >> (std::numeric_limits<std::size_t>::digits - 6);
    }

    std::array<Storage*, small / line + 1> small_{};
    std::array<Storage*, buckets> large_{};
};

// The sums of one page, or of all: by class, and over the classes.
using Sums = std::array<std::int64_t, rows>;

// One device's page in one thread's book. What is in use is what was brought less what waits in the cache;
// what of it is not held as something else is temporary. So the hot path counts bytes in one sum, `cached`.
struct ThreadStats {
    Counter<std::int64_t> cached;
    std::int64_t min_cached = 0;  // when less waits, more may be in use than ever: look at the peaks
    std::int64_t min_cached_for_all = 0, min_cached_for_temporary = 0;  // it is the larger of these
    std::atomic<bool> check_peaks{
        true};  // or look at every change; set by anyone, taken back by this thread alone
    Counter<std::uint64_t> allocations, fresh;
    std::atomic<std::int64_t> cache_limit{0};
    Counter<std::int64_t> acquired;  // from the device and from other threads; negative where more went there
    std::array<Counter<std::int64_t>, memory_classes> held;  // but for what is temporary
    Sums headroom{};  // so far its sums may grow, as long as no other thread's do, before a peak is exceeded
    FreeLists cache;

    // Says whether the peaks must be looked at.
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
    // Says whether there was room.
    bool on_free(Storage* storage) {
        const auto bytes = static_cast<std::int64_t>(storage->bytes);
        const std::int64_t waiting = cached.get() + bytes;
        if (bytes == 0 || waiting > cache_limit.load(std::memory_order_relaxed)) return false;
        cached.set(waiting);
        const std::uint64_t ref_count = storage->ref_count.load(std::memory_order_relaxed);
        if (ref_count >> 32 != 0) hold(memory_class_of(ref_count), -bytes);  // not temporary
        cache.put(storage, storage->bytes);
        return true;
    }

    Sums sums() const {
        Sums now{};
        std::int64_t other = 0;
        for (std::size_t row = 0; row < memory_classes; ++row) other += now[row] = held[row].get();
        std::int64_t all = acquired.get(), before = 0, waiting = 0;
        do {  // what waits belongs to what was brought when it was looked at
            before = all;
            waiting = cached.get();
            all = acquired.get();
        } while (all != before);
        now[all_classes] = all - waiting;
        now[temporary] = now[all_classes] - other;
        return now;
    }
    void add_acquired(std::int64_t bytes) {  // or send away, when negative
        acquired.add(bytes);
        update_headroom();
    }
    void hold(MemoryClass memory_class, std::int64_t bytes) {  // or let go of, when negative
        held[static_cast<std::size_t>(memory_class)].add(bytes);
        min_cached_for_temporary -= bytes;
        min_cached = std::max(min_cached_for_all, min_cached_for_temporary);
    }
    void update_headroom() {
        const Sums now = sums();
        min_cached_for_all = cached.get() + now[all_classes] - headroom[all_classes];
        min_cached_for_temporary = cached.get() + now[temporary] - headroom[temporary];
        min_cached = std::max(min_cached_for_all, min_cached_for_temporary);
    }
    bool exceeds_headroom(MemoryClass memory_class) const {
        return memory_class == MemoryClass::temporary ? cached.get() < min_cached
                                                      : held[static_cast<std::size_t>(memory_class)].get() >
                                                            headroom[static_cast<std::size_t>(memory_class)];
    }
    static constexpr auto temporary = static_cast<std::size_t>(MemoryClass::temporary);
};

Sums sums(Device device);  // of all threads; none is negative

}  // namespace tally::memory::detail
