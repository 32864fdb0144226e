// A FailingNew makes the n-th allocation of this program fail, and can also make all later allocations fail.
#pragma once

#include <cstdint>
#include <utility>

#include "tally/memory/memory.hpp"
#include "tally/memory/pool.hpp"

namespace tally::test {

enum class Scarce {
    once,          // only the n-th host allocation, made by operator new or posix_memalign, fails
    from_then_on,  // the n-th and all later host allocations fail
    // The n-th allocation of the memory accounting fails, even if a cached buffer could serve it.
    ledger,
};

// Allocations fail only after the call of start(), and only while a FailingNew exists. AddressSanitizer
// replaces operator new, so with AddressSanitizer only the memory accounting's allocations fail.
class FailingNew {
public:
    FailingNew(Scarce kind, std::uint64_t n) : kind_(kind), n_(n) {}
    FailingNew(const FailingNew&) = delete;
    FailingNew& operator=(const FailingNew&) = delete;
    ~FailingNew() { stop(); }

    // Empties the memory cache, so that every later allocation can fail, and begins to count allocations.
    void start();
    void stop();
    bool failed() const { return failed_; }

private:
    Scarce kind_;
    std::uint64_t n_;
    bool failed_ = false;
};

// Calls prepare(n), f and inspect(threw) for n = 1, 2, 3, ... and makes the n-th allocation of f fail, until
// no allocation fails. Returns the number of allocations that failed.
template <class Prepare, class F, class Inspect>
std::uint64_t fail_each_allocation(Scarce kind, Prepare prepare, F f, Inspect inspect) {
    for (std::uint64_t n = 1;; ++n) {
        prepare(n);
        bool threw = false;
        FailingNew scarce(kind, n);
        scarce.start();
        try {
            f();
        } catch (const std::exception&) {
            threw = true;
        }
        scarce.stop();
        inspect(threw);
        if (!scarce.failed() && !threw) return n - 1;
    }
}

}  // namespace tally::test
