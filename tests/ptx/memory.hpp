// The memory of the executed device: allocations, and marks of the threads that accessed each byte.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tally::ptx {

// The moment of an access. Epochs count the barriers, and also the starts of blocks and launches. Blocks run one
// after the other, so epochs from `block` on belong to the block that runs, and those from `launch` on to the launch.
struct Access {
    std::uint32_t thread, epoch, block, launch;
};

// The threads that wrote and read a unit of memory last.
struct Marks {
    static constexpr std::uint32_t none = ~0u, several = ~0u - 1;

    std::uint32_t writer = 0, write_epoch = 0, reader = 0, read_epoch = 0;

    bool is_written_in_block(const Access& now) const { return write_epoch >= now.block; }

    // Return the thread of an access that no barrier separates from the access `now`, or `none`.
    std::uint32_t read(const Access& now) {
        const std::uint32_t other = unordered(writer, write_epoch, now);
        if (read_epoch < now.launch || (read_epoch >= now.block && read_epoch < now.epoch))
            reader = now.thread, read_epoch = now.epoch;
        else if (reader != now.thread && read_epoch == now.epoch)
            reader = several;
        return other;  // a thread of an earlier block stays the reader, because no barrier separates it from threads of later blocks
    }
    std::uint32_t write(const Access& now) {
        std::uint32_t other = unordered(writer, write_epoch, now);
        if (other == none) other = unordered(reader, read_epoch, now);
        writer = now.thread, write_epoch = now.epoch;
        return other;
    }

private:
    static std::uint32_t unordered(std::uint32_t thread, std::uint32_t epoch, const Access& now) {
        const bool is_ordered =
            epoch < now.launch || (epoch >= now.block && epoch < now.epoch) || thread == now.thread;
        return is_ordered ? none : thread;
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
    Memory();

    std::byte* base_;
    std::size_t used_ = 0, live_ = 0;
    std::map<std::uint64_t, std::unique_ptr<Allocation>> allocations_;
};

}  // namespace tally::ptx
