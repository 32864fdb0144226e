// The memory of the executed device: allocations, and marks of the threads that accessed each unit of memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tally::ptx {

// The thread and the time of an access. The epoch increases at each barrier and at each start of a block or launch.
// `block` and `launch` are the epochs in which the current block and the current launch began.
struct Access {
    std::uint32_t thread, epoch, block, launch;
};

// The last writer of a unit of memory, and the readers of an epoch.
struct Marks {
    static constexpr std::uint32_t none = ~0u, several = ~0u - 1, others_too = 1u << 31;

    std::uint32_t writer = 0, write_epoch = 0;
    // The first reader of an epoch; others_too is set if another thread has read as well.
    std::uint32_t reader = 0, read_epoch = 0;

    bool is_written_in_block(const Access& now) const { return write_epoch >= now.block; }

    // Return the thread of an access that no barrier separates from the access `now`; `several` if it is one of the
    // other readers, or `none`.
    std::uint32_t read(const Access& now) {
        if (read_epoch < now.launch || (read_epoch >= now.block && read_epoch < now.epoch))
            reader = now.thread, read_epoch = now.epoch;
        else if (reader != now.thread && read_epoch == now.epoch)
            reader |= others_too;
        // A thread of an earlier block stays the reader, because no barrier separates it from threads of later blocks.
        return is_ordered(write_epoch, now) || writer == now.thread ? none : writer;
    }
    std::uint32_t write(const Access& now) {
        std::uint32_t other = none;
        if (!is_ordered(write_epoch, now) && writer != now.thread)
            other = writer;
        else if (!is_ordered(read_epoch, now) && reader != now.thread)
            other = (reader & ~others_too) == now.thread ? several : reader & ~others_too;
        writer = now.thread, write_epoch = now.epoch;
        return other;
    }

private:
    static bool is_ordered(std::uint32_t epoch, const Access& now) {
        return epoch < now.launch || (epoch >= now.block && epoch < now.epoch);
    }
};

struct Allocation {
    std::uint64_t base = 0, bytes = 0;
    bool is_free = false;
    std::uint64_t unit = 1;    // bytes for each mark: the size of the smallest access
    std::vector<Marks> marks;  // made at the first access of a kernel

    void refine(std::uint64_t size);
};

// A device with 1 GiB of memory. Addresses are never used twice, so an access after a release is found. The host
// can access the memory of the device only between open() and close().
class Memory {
public:
    static constexpr std::size_t capacity = std::size_t{1} << 30;

    static Memory& one();

    void* allocate(std::size_t bytes);  // null if the device has no memory left
    void* pinned(std::size_t bytes);
    std::string free(void* data);       // returns a complaint, or nothing
    bool owns(const void* data) const;  // whether only the device may access the address
    void open();
    void close();

    // Returns the allocation at or before the address, or null.
    Allocation* find(std::uint64_t address);
    void add(std::uint64_t base, std::size_t bytes);
    // Returns the complaint about a copy that leaves its allocation, or nothing.
    std::string complaint(const void* data, std::size_t bytes);

private:
    std::byte* base_ = nullptr;  // reserved by the first allocation
    std::size_t used_ = 0, live_ = 0;
    std::map<std::uint64_t, std::unique_ptr<Allocation>> allocations_;
};

}  // namespace tally::ptx
