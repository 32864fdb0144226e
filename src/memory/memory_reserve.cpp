// A reserve takes the place of a thread's free lists for a while.
#include "tally/memory/memory_reserve.hpp"

#include <limits>
#include <unordered_set>
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
      fresh_(account_.fresh.get()) {
    account_.bring(-account_.cached.get());  // first, or who looks meanwhile sees too much in use
    reserve_.exchange(account_);
    account_.expect();
    if (hold) account_.noted = &noted_;
    account_.look.store(true);
}

Reserve::Use::~Use() {
    account_.noted = nullptr;
    std::unordered_set<Storage*> lent(noted_.begin(), noted_.end());
    account_.cache.for_each([&](Storage* back) { lent.erase(back); });
    for (Storage* storage : lent) {
        keep(storage);
        reserve_.held_.push_back(storage);
    }
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
