// A reserve takes the place of a thread's free lists for a while.
#include "tally/memory/memory_reserve.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tally::memory {

// What waits in the cache of the moment is not in use; what waits in the other was never brought, if it is
// the thread's own, or is in use, if it is the reserve's.
void Reserve::exchange(detail::Account& account) {
    std::swap(account.cache, waiting_);
    const std::int64_t waiting = account.cached.get();
    account.cached.set(bytes_);
    bytes_ = waiting;
}

Reserve::Use::Use(Reserve& reserve, bool hold)
    : reserve_(reserve),
      account_(detail::account_of_this_thread(reserve.device_)),
      limit_(account_.cache_limit.exchange(std::numeric_limits<std::int64_t>::max())),
      fresh_(account_.fresh.get()),
      held_(reserve.held_.size()) {
    account_.bring(-account_.cached.get());  // first, or who looks meanwhile sees too much in use
    reserve_.exchange(account_);
    account_.expect();
    if (hold) account_.noted = &reserve_.held_;
    account_.look.store(true);
}

Reserve::Use::~Use() {
    account_.noted = nullptr;
    // Needs no memory: what has come back is marked where it waits.
    account_.cache.for_each([](Storage* back) { back->holders.store(0); });
    std::vector<Storage*>& held = reserve_.held_;
    const auto noted = held.begin() + static_cast<std::ptrdiff_t>(held_);
    held.erase(std::remove_if(noted, held.end(), [](Storage* each) { return holders(each) == 0; }),
               held.end());
    std::for_each(noted, held.end(), keep);
    const std::int64_t own = reserve_.bytes_;
    reserve_.exchange(account_);
    account_.bring(own);
    account_.cache_limit.store(limit_);
    account_.look.store(true);
}

std::uint64_t Reserve::Use::fresh() const { return account_.fresh.get() - fresh_; }

Reserve::~Reserve() {
    for (Storage* storage : held_) forget(storage);
    waiting_.for_each([](Storage* storage) {
        storage->holders.store(0);  // it left its class when it came here
        recycle(storage);
    });
}

}  // namespace tally::memory
