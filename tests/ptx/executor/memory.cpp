// Allocates the memory of the executed device.
#include "memory.hpp"

#include <sys/mman.h>

#include <new>
#include <stdexcept>

namespace tally::ptx {

namespace {

constexpr std::size_t region = std::size_t{1} << 40, page = 4096;  // addresses, of which few have memory

}  // namespace

void Allocation::refine(std::uint64_t size) {
    std::vector<Marks> fine;
    fine.reserve(marks.size() * unit / size);
    for (const Marks& one : marks) fine.insert(fine.end(), unit / size, one);
    marks = std::move(fine);
    unit = size;
}

Memory& Memory::one() {
    static Memory* const made =
        new Memory;  // never destroyed, because arrays may be freed while the program ends
    return *made;
}

void* Memory::allocate(std::size_t bytes) {
    if (base_ == nullptr) {
        void* const place =
            mmap(nullptr, region, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (place == MAP_FAILED)
            throw std::runtime_error("[ptx] no address space for the memory of a device");
        base_ = static_cast<std::byte*>(place);
    }
    // At least one page without memory follows each allocation.
    const std::size_t pages = (bytes + page - 1) / page * page + page;
    if (bytes > capacity - live_ || pages > region - used_) return nullptr;
    std::byte* const data = base_ + used_;
    used_ += pages;
    live_ += bytes;
    add(reinterpret_cast<std::uint64_t>(data), bytes);
    return data;
}

void* Memory::pinned(std::size_t bytes) {
    // Not by malloc, because a kernel's addresses must be above first_global.
    void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    add(reinterpret_cast<std::uint64_t>(data), bytes);
    return data;
}

void Memory::add(std::uint64_t base, std::size_t bytes) {
    allocations_[base] = std::make_unique<Allocation>(Allocation{.base = base, .bytes = bytes, .marks = {}});
}

std::string Memory::free(void* data) {
    Allocation* const found = find(reinterpret_cast<std::uint64_t>(data));
    if (!owns(data) || found == nullptr || found->base != reinterpret_cast<std::uint64_t>(data) ||
        found->is_free)
        return "[ptx] memory is released that was not allocated, or is released twice";
    found->is_free = true;
    found->marks = {};
    live_ -= found->bytes;
    madvise(data, (found->bytes + page - 1) / page * page, MADV_DONTNEED);
    return "";
}

bool Memory::owns(const void* data) const {
    const auto* const byte = static_cast<const std::byte*>(data);
    return base_ != nullptr && byte >= base_ && byte < base_ + region;
}

void Memory::open() { mprotect(base_, used_, PROT_READ | PROT_WRITE); }
void Memory::close() { mprotect(base_, used_, PROT_NONE); }

Allocation* Memory::find(std::uint64_t address) {
    const auto after = allocations_.upper_bound(address);
    return after == allocations_.begin() ? nullptr : std::prev(after)->second.get();
}

std::string Memory::complaint(const void* data, std::size_t bytes) {
    if (!owns(data)) return "";
    const auto address = reinterpret_cast<std::uint64_t>(data);
    const Allocation* const found = find(address);
    const bool fits = found != nullptr && address - found->base <= found->bytes &&
                      bytes <= found->bytes - (address - found->base);
    if (fits && !found->is_free) return "";
    return std::to_string(bytes) + " bytes of device memory " +
           (fits ? "are accessed after their release" : "are outside of an allocation");
}

}  // namespace tally::ptx
