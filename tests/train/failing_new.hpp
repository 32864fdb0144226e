// Memory of this program that runs out: the n-th time it is asked for, once or from then on.
#pragma once

#include <cstdint>
#include <utility>

#include "tally/memory/memory.hpp"
#include "tally/memory/pool.hpp"

namespace tally::test {

enum class Scarce {
    once,          // of the host: new, and the ledger's own memory
    from_then_on,  // likewise
    ledger,        // an allocation of the ledger, also one that what waits there would serve
};

// While one lives, from its start() on; `failed()` says whether it has come to it. Under AddressSanitizer,
// which wants new for itself, only the ledger's allocations fail.
class FailingNew {
public:
    FailingNew(Scarce kind, std::uint64_t n) : kind_(kind), n_(n) {}
    FailingNew(const FailingNew&) = delete;
    FailingNew& operator=(const FailingNew&) = delete;
    ~FailingNew() { stop(); }

    // Of what is running now nothing waits in a cache.
    void start();
    void stop();
    bool failed() const { return failed_; }

private:
    Scarce kind_;
    std::uint64_t n_;
    bool failed_ = false;
};

// Does f with its n-th allocation failing, for n = 1, 2, 3, ..., until none fails any more: before each
// `prepare`, after each `look(whether f threw)`. How many places there were.
template <class Prepare, class F, class Look>
std::uint64_t fail_each_allocation(Scarce kind, Prepare prepare, F f, Look look) {
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
        look(threw);
        if (!scarce.failed() && !threw) return n - 1;
    }
}

}  // namespace tally::test
