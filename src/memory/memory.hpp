// The ledger: every tensor byte of a device is handed out, counted and taken back here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tally/base/error.hpp"
#include "tally/kernels/device.hpp"

namespace tally {

// What a buffer is held for. A forward value is `temporary` until a rule saves it.
enum class MemoryClass : std::uint8_t { parameter, gradient, saved, temporary };

// The device has not got it, or its budget does not allow it.
class OutOfMemory : public Error {
public:
    OutOfMemory(const std::string& what, Device on, std::size_t asked_bytes, std::size_t bytes_in_use)
        : Error(what), device(on), asked(asked_bytes), in_use(bytes_in_use) {}
    Device device;
    std::size_t asked, in_use;  // bytes, when it happened
};

namespace memory {

namespace detail {
inline constexpr int memory_classes = 4;

// A reference-counted buffer. Several threads may read it at the same time, copy and drop arrays that
// share it, and record rules that keep it. A freed Storage keeps its block and waits in a free list to
// be used again.
struct Storage {
    void* data;         // aligned to a line, in the device's memory (some address when bytes is 0)
    std::size_t bytes;  // rounded up to whole lines (base/alignment.hpp)
    std::atomic<std::uint64_t> ref_count;  // arrays and rules; how many of them are rules; its class
    std::atomic<std::uint32_t> version;    // raised by every modification in place
    std::atomic<std::uint32_t>
        replaced_by_thread;  // the thread that gave the parameter that lay here another value
    Device device;
    Storage* next_free;
    // For CheckRules (check_rules.hpp): of the bytes when the first of the rules came, if it was asked for.
    std::uint64_t checksum;
    std::uint32_t checksum_version;
    std::atomic<bool> has_checksum;
    std::size_t requested_bytes;  // known under AddressSanitizer, where there are no more
};

// A fresh buffer of at least `bytes`: one holder, no rules, version 0, temporary. The bytes are uninitialised
// (NaN when poisoned). Throws OutOfMemory, which names asked, budget, in use, cached and largest free.
Storage* allocate(std::size_t bytes, Device device);
void return_to_cache(Storage* storage);  // nobody holds it any more
// Moves the bytes to another row of the ledger; `saved` is nobody's to say, since rules make it so.
void reclassify(Storage* storage, MemoryClass memory_class);

// All that threads change together is one word, so that none of them sees one part without the other: in the
// lower half arrays and rules, above it the rules among them, in the two highest bits parameter or gradient.
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
// The last one recycles the buffer. Who finds to be the only one needs no locked instruction to know it:
// nobody is left who could make another.
inline void unref(Storage* storage) {
    if (ref_count(storage) == 1 ||
        static_cast<std::uint32_t>(storage->ref_count.fetch_sub(1, std::memory_order_acq_rel)) == 1)
        return_to_cache(storage);
}

// A rule keeps or lets go of a value: while a temporary is kept by at least one rule it counts as `saved`.
void on_first_save(Storage* storage, std::uint64_t ref_count_before);
void on_last_unsave(Storage* storage);
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
        return return_to_cache(storage);  // the ledger takes it from the class it is in
    if (storage->ref_count.fetch_sub(one_saved_ref - 1) >> 32 == 1) on_last_unsave(storage);
    unref(storage);
}

// Whether this thread notes the bytes of what the first of its rules saves (set_checks, trial.hpp).
inline constinit thread_local bool checksum_saved = false;
// Whether bytes of a buffer that rules keep are no longer what they were when the first of them came,
// although its version is; known only of what was saved while `checksum_saved` was set.
bool changed_since_saved(const Storage* storage);

// Whoever is about to write says so; alone with the buffer, or for all who have saved it to notice.
inline void raise_version(Storage* storage) {
    storage->version.store(storage->version.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// A parameter that lay here was given another value, elsewhere: rules of this thread that keep the old one
// are told. Those of another thread keep what they were given, and nothing else has happened since `version`.
void mark_replaced(Storage* storage);
bool replaced_by_another_thread(const Storage* storage, std::uint32_t version);

void poison(Storage* storage);  // with NaN bytes
void hold_poison(bool begins);  // as set_poison(true), for as long as anybody wants it
}  // namespace detail

// What the ledger knows of a device.
struct Report {
    std::size_t in_use = 0, peak = 0;  // bytes, all classes together
    std::size_t in_use_by[detail::memory_classes] = {},
                peak_by[detail::memory_classes] = {};  // bytes; index: MemoryClass
    std::size_t cached = 0;                            // bytes waiting in free lists
    std::size_t packing = 0;       // bytes of the kernels' packing buffers; part of nothing else that is here
    std::size_t budget = 0;        // 0: none
    std::size_t largest_free = 0;  // with a budget: largest block that can still be had
    std::uint64_t allocations = 0;  // buffers handed out
    std::uint64_t reused = 0;       // of these, served from a free list
};

// Of a device: all of it.
Report report(Device device = Device::cpu);
std::string to_string(const Report& report);  // a small table, one class a line

// Bytes in use: now, and the most since the program began or since reset_peak().
std::size_t in_use(Device device = Device::cpu);
std::size_t peak(Device device = Device::cpu);
void reset_peak(Device device = Device::cpu);

// Makes the device as small as `bytes`: one contiguous arena, best fit, so that fragmentation is real; 0
// lifts the budget. An error while buffers are in use, or cached by other threads.
void set_budget(std::size_t bytes, Device device = Device::cpu);
std::size_t budget(Device device = Device::cpu);

// A thread caches at most 64 MiB or the peak, whichever is more (what waits beyond that has sizes no longer
// asked for), and gives all of it back when it ends. With a budget the threads share one cache, so that no
// block is out of reach.
void drop_cache(Device device = Device::cpu);  // gives this thread's cached blocks back, and the shared ones
// For tests: the n-th buffer that this thread asks for from now on, whether or not one waits in a cache, is
// refused with OutOfMemory; 0: none is. Costs nothing while none is to be refused.
void fail_allocation(std::uint64_t n);
// Fresh buffers are filled with NaN bytes (tests; on in debug builds). Says whether they were before.
bool set_poison(bool on);

}  // namespace memory
}  // namespace tally
