// Replaces operator new and posix_memalign of this program, so that a test can make an allocation fail.
#include "train/failing_new.hpp"

#include <cstddef>
#include <cstdint>

#include "own_new.hpp"

namespace {

// The counter is thread-local, so that allocations in the kernels' threads do not count.
thread_local std::uint64_t until = 0;  // 0 means that no allocation fails
thread_local bool for_ever = false, hit = false;

}  // namespace

bool tally::test::allocation_fails(std::size_t) {
    if (until == 0 || --until > 0) return false;
    if (for_ever) until = 1;
    return hit = true;
}

namespace tally::test {

void FailingNew::start() {
    memory::drop_cache();
    pool::drop();
    hit = false;
    for_ever = kind_ == Scarce::from_then_on;
    if (kind_ == Scarce::ledger)
        memory::detail::fail_allocation(n_);
    else
        until = n_;
}

void FailingNew::stop() {
    if (hit) failed_ = true;
    memory::detail::fail_allocation(0);
    until = 0;
    hit = false;
}

}  // namespace tally::test
