// Replaces operator new and posix_memalign. An allocation fails if allocation_fails() returns true. One file
// of a program includes this header and defines allocation_fails().
#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tally/memory/pool.hpp"

namespace tally::test {
bool allocation_fails(std::size_t bytes);
}

#if !TALLY_ASAN  // AddressSanitizer has its own operator new
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return tally::test::allocation_fails(bytes) ? nullptr : std::malloc(bytes ? bytes : 1);
}
void* operator new(std::size_t bytes) {
    if (void* memory = operator new(bytes, std::nothrow)) return memory;
    throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const auto align = static_cast<std::size_t>(alignment);
    if (!tally::test::allocation_fails(bytes))
        if (void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
    throw std::bad_alloc();
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // g++ does not see that new calls malloc
#endif
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
    using Real = int (*)(void**, std::size_t, std::size_t);
    static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "posix_memalign"));
    return tally::test::allocation_fails(bytes) ? ENOMEM : real(memory, alignment, bytes);
}
#endif
