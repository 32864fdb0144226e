// Allocates, counts and frees the memory of arrays on each device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tally/base/error.hpp"
#include "tally/kernels/device.hpp"

namespace tally {

// The purpose of a buffer. A forward value is `temporary` until a backward function saves the value.
enum class MemoryClass : std::uint8_t { parameter, gradient, saved, temporary };

// Thrown if an allocation exceeds the memory or the budget of the device.
class OutOfMemory : public Error {
public:
    OutOfMemory(const std::string& what, Device on, std::size_t asked_bytes, std::size_t bytes_in_use)
        : Error(what), device(on), asked(asked_bytes), in_use(bytes_in_use) {}
    Device device;
    std::size_t asked, in_use;  // bytes at the time of the failure
};

namespace memory {

namespace detail {
inline constexpr int memory_classes = 4;

// A `Storage` is a reference-counted buffer. Several threads may at the same time read the buffer, save the
// buffer, and copy or free arrays that share the buffer. Free lists store freed buffers for reuse.
struct Storage {
    void* data;         // aligned to a line, in the device's memory (some address when bytes is 0)
    std::size_t bytes;  // rounded up to whole lines (base/alignment.hpp)
    std::atomic<std::uint64_t> ref_count;  // arrays and saved values, number of saved values, memory class
    std::atomic<std::uint32_t> version;    // raised by every modification in place
    std::atomic<std::uint32_t> replaced_by_thread;  // the thread that called mark_replaced()
    Device device;
    Storage* next_free;
    // `CheckRules` sets the checksum when a backward function first saves the buffer (check_rules.hpp).
    std::uint64_t checksum;
    std::uint32_t checksum_version;
    std::atomic<bool> has_checksum;
    std::size_t requested_bytes;  // under AddressSanitizer also the size of the allocation
};

// Returns a temporary buffer of at least `bytes` bytes with one reference and version 0. The bytes are
// uninitialised. With hold_poison() or set_poison(), the bytes are NaN. Throws OutOfMemory.
Storage* allocate(std::size_t bytes, Device device);
void return_to_cache(Storage* storage);  // after the last reference is gone
// Sets the memory class to any class except `saved`, which follows from the number of saved values.
void reclassify(Storage* storage, MemoryClass memory_class);

// One atomic word stores the reference counts and the memory class, so that both change together. The lower
// half counts arrays and saved values. The upper half counts saved values. The two top bits are the class.
inline constexpr std::uint64_t one_saved_ref = (std::uint64_t{1} << 32) + 1;
inline constexpr int class_bit = 62;
constexpr std::uint64_t class_bits(MemoryClass memory_class) {
    return memory_class == MemoryClass::parameter || memory_class == MemoryClass::gradient
               ? (static_cast<std::uint64_t>(memory_class) + 1) << class_bit
               : 0;
}
constexpr MemoryClass memory_class_of(std::uint64_t ref_count) {
    if (ref_count >> class_bit) return static_cast<MemoryClass>((ref_count >> class_bit) - 1);
    return ref_count >> 32 ? MemoryClass::saved : MemoryClass::temporary;
}
inline MemoryClass memory_class(const Storage* storage) {
    return memory_class_of(storage->ref_count.load(std::memory_order_relaxed));
}
inline std::uint32_t ref_count(const Storage* storage) {
    return static_cast<std::uint32_t>(storage->ref_count.load(std::memory_order_acquire));
}
inline bool is_unique_temporary(const Storage* storage) {
    return storage->ref_count.load(std::memory_order_acquire) == 1;
}
inline void ref(Storage* storage) { storage->ref_count.fetch_add(1, std::memory_order_relaxed); }
// Removes a reference. The last removal returns the buffer to the cache. If the count is 1, no other thread
// can add a reference, and the function needs no atomic decrement.
inline void unref(Storage* storage) {
    if (ref_count(storage) == 1 ||
        static_cast<std::uint32_t>(storage->ref_count.fetch_sub(1, std::memory_order_acq_rel)) == 1)
        return_to_cache(storage);
}

// A temporary buffer has the class `saved` while at least one backward function saves the buffer.
void on_first_save(Storage* storage, std::uint64_t ref_count_before);
void count_class_change(Device device, std::size_t bytes, MemoryClass before, MemoryClass now);
constexpr std::uint32_t saved_count_of(std::uint64_t ref_count) {
    return static_cast<std::uint32_t>(ref_count << 2 >> 34);
}
inline std::uint32_t saved_count(const Storage* storage) { return saved_count_of(storage->ref_count.load()); }
inline void ref_saved(Storage* storage) {
    const std::uint64_t before = storage->ref_count.fetch_add(one_saved_ref);
    if (saved_count_of(before) == 0) on_first_save(storage, before);
}
inline void unref_saved(Storage* storage) {
    if (storage->ref_count.load(std::memory_order_acquire) == one_saved_ref)
        return return_to_cache(storage);    // subtracts the bytes from `saved`
    const Device device = storage->device;  // read before another thread can free the buffer
    const std::size_t bytes = storage->bytes;
    const std::uint64_t before = storage->ref_count.fetch_sub(one_saved_ref);
    if (before >> 32 == 1) count_class_change(device, bytes, MemoryClass::saved, MemoryClass::temporary);
    if (static_cast<std::uint32_t>(before) == 1) return_to_cache(storage);
}

// If true, this thread computes a checksum of each buffer that a backward function saves (see set_checks()).
inline constinit thread_local bool checksum_saved = false;
// Returns whether the numbers in a saved buffer have changed although the version of the buffer is unchanged.
// Finds changes only in buffers that were saved while `checksum_saved` was true.
bool changed_since_saved(const Storage* storage);

// Call raise_version() before a write, so that backward functions that saved the buffer detect the write.
inline void raise_version(Storage* storage) {
    storage->version.store(storage->version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Call mark_replaced() after a parameter has moved to a new buffer. Raises the version of the old buffer, so
// that a backward function of this thread throws if it needs the old value.
void mark_replaced(Storage* storage);
// Returns whether the only change since `version` is that another thread called mark_replaced().
bool replaced_by_another_thread(const Storage* storage, std::uint32_t version);

void poison(Storage* storage);  // fills the buffer with NaN bytes
void hold_poison(bool begins);  // poisons fresh buffers between hold_poison(true) and hold_poison(false)
}  // namespace detail

// The memory statistics of one device.
struct Report {
    std::size_t in_use = 0, peak = 0;  // bytes, all classes together
    std::size_t in_use_by[detail::memory_classes] = {},
                peak_by[detail::memory_classes] = {};  // bytes; index: MemoryClass
    std::size_t cached = 0;                            // bytes in free lists
    std::size_t packing = 0;        // bytes of the kernels' packing buffers, not part of the other numbers
    std::size_t budget = 0;         // 0: none
    std::size_t largest_free = 0;   // with a budget: the largest block that can still be allocated
    std::uint64_t allocations = 0;  // buffers allocated so far
    std::uint64_t reused = 0;       // allocations from a free list

    friend std::string to_string(const Report& report);  // a table with one line for each class
};

Report report(Device device = Device::cpu);  // for all threads together

// in_use() returns the bytes in use now. peak() returns the most since the start or since reset_peak(). With one
// thread, the peak is exact. With several threads, the peak can be too small by up to 64 KiB per thread. It can also
// miss an array if several threads allocate or free at the same moment.
std::size_t in_use(Device device = Device::cpu);
std::size_t peak(Device device = Device::cpu);
void reset_peak(Device device = Device::cpu);

// Limits the device to one contiguous arena of `bytes` bytes, which can fragment like real device memory.
// 0 removes the budget. Throws Error while buffers are in use or cached by other threads.
void set_budget(std::size_t bytes, Device device = Device::cpu);

// Frees the cached blocks of this thread and the shared cached blocks. A thread caches at most the larger
// of 64 MiB and the peak, and frees its cache when it ends. With a budget, all threads share one cache.
void drop_cache(Device device = Device::cpu);

namespace detail {
// For tests: lets the n-th next allocation of this thread throw OutOfMemory. If n is 0, no allocation throws.
void fail_allocation(std::uint64_t n);
// If `on`, each new buffer is filled with NaN bytes, as in debug builds. Returns the previous setting.
bool set_poison(bool on);
std::size_t budget(Device device = Device::cpu);
}  // namespace detail

}  // namespace memory
}  // namespace tally
