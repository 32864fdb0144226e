// This program's operator new and posix_memalign, which a test may let fail.
#include "train/failing_new.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

// Of the thread that runs the test: the kernels' threads are not counted.
thread_local std::uint64_t until = 0;  // 0: none fails
thread_local bool for_ever = false, hit = false;

[[maybe_unused]] bool fails() {
    if (until == 0 || --until > 0) return false;
    if (for_ever) until = 1;
    return hit = true;
}

}  // namespace

#if !TALLY_ASAN
void* operator new(std::size_t bytes) {
    if (!fails())
        if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
    throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return fails() ? nullptr : std::malloc(bytes ? bytes : 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const auto align = static_cast<std::size_t>(alignment);
    if (!fails())
        if (void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
    throw std::bad_alloc();
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // it does not see that new is malloc here
#endif
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
    using Real = int (*)(void**, std::size_t, std::size_t);
    static const Real real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "posix_memalign"));
    return fails() ? ENOMEM : real(memory, alignment, bytes);
}
#endif

namespace tally::test {

void FailingNew::start() {
    memory::drop_cache();
    pool::drop();
    hit = false;
    for_ever = kind_ == Scarce::from_then_on;
    if (kind_ == Scarce::ledger)
        memory::fail_allocation(n_);
    else
        until = n_;
}

void FailingNew::stop() {
    if (hit) failed_ = true;
    memory::fail_allocation(0);
    until = 0;
    hit = false;
}

}  // namespace tally::test
