// The ledger: every tensor byte of a device is handed out, counted and taken back here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "autograd/device.hpp"
#include "autograd/error.hpp"

namespace tally {

// What a buffer is held for. A forward value is `temporary` until a rule saves it.
enum class MemoryClass : std::uint8_t { parameter, gradient, saved, temporary };
inline constexpr int memory_classes = 4;

// A reference-counted buffer. Counts are plain integers: arrays, like graphs, belong to one thread at a time
// (hand one over, or clone it). A freed Storage keeps its block and waits in a free list to be used again.
struct Storage {
    void* data;             // 64-byte aligned, in the device's memory (some address when bytes is 0)
    std::size_t bytes;      // rounded up to a multiple of 64
    std::uint32_t refs;     // arrays that share this buffer
    std::uint32_t savers;   // rules that keep it for the backward pass
    std::uint32_t version;  // raised by every modification in place
    MemoryClass held_as;
    Device device;
    Storage* next_free;
};

class OutOfMemory : public Error {
public:
    OutOfMemory(const std::string& what, Device on, std::size_t asked_bytes, std::size_t bytes_in_use)
        : Error(what), device(on), asked(asked_bytes), in_use(bytes_in_use) {}
    Device device;
    std::size_t asked, in_use;  // bytes, when it happened
};

namespace memory {

// A fresh buffer of at least `bytes`: refs 1, savers 0, version 0, temporary. The bytes are uninitialised
// (NaN when poisoned). Throws OutOfMemory, which names asked, budget, in use, cached and largest free.
Storage* allocate(std::size_t bytes, Device device);
void recycle(Storage* storage);                          // refs has reached 0
void reclassify(Storage* storage, MemoryClass held_as);  // moves the bytes to another row of the ledger

// Handle counts; `forget` recycles the buffer when the last array lets go.
inline void keep(Storage* storage) { ++storage->refs; }
inline void forget(Storage* storage) {
    if (--storage->refs == 0) recycle(storage);
}

// A rule keeps or lets go of a value: while a temporary is kept by at least one rule it counts as `saved`.
inline void save(Storage* storage) {
    if (storage->savers++ == 0 && storage->held_as == MemoryClass::temporary)
        reclassify(storage, MemoryClass::saved);
}
inline void unsave(Storage* storage) {
    if (--storage->savers == 0 && storage->held_as == MemoryClass::saved)
        reclassify(storage, MemoryClass::temporary);
}

struct Report {
    std::size_t in_use = 0, peak = 0;                                          // bytes, all classes together
    std::size_t in_use_by[memory_classes] = {}, peak_by[memory_classes] = {};  // bytes; index: MemoryClass
    std::size_t cached = 0;                                                    // bytes waiting in free lists
    std::size_t budget = 0;                                                    // 0: none
    std::size_t largest_free = 0;   // with a budget: largest block that can still be had
    std::uint64_t allocations = 0;  // buffers handed out
    std::uint64_t reused = 0;       // of these, served from a free list
};

Report report(Device device = Device::cpu);
std::string to_string(const Report& report);    // a small table, one class a line
std::string bytes_in_words(std::size_t bytes);  // "960 B", "45.0 MiB"

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
void set_poison(bool on);  // fill fresh buffers with NaN bytes (tests; on in debug builds)

}  // namespace memory
}  // namespace tally
