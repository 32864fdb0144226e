// The ledger at work: hand out, count, take back.
//
// A buffer used before costs a few nanoseconds: it comes from its thread's free lists and is counted in its
// thread's shard, without a lock or a locked instruction. What is rarer is in the functions named `_slowly`.
#include "tally/memory/memory.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "tally/base/raw_memory.hpp"
#include "tally/base/text.hpp"
#include "tally/memory/memory_shard.hpp"
#include "tally/memory/raw.hpp"

#if TALLY_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace tally::memory {
namespace {

using namespace detail;

constexpr std::size_t max_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - line;
constexpr std::int64_t min_cache_limit = 64 << 20;

// Tells AddressSanitizer. On the host alone: a device works later, and on what was let go, too.
void may_touch([[maybe_unused]] bool yes, [[maybe_unused]] const void* data,
               [[maybe_unused]] std::size_t bytes, [[maybe_unused]] Device device) {
#if TALLY_ASAN
    if (device == Device::cpu)
        yes ? __asan_unpoison_memory_region(data, bytes) : __asan_poison_memory_region(data, bytes);
#endif
}

// ---- threads ----

// Static arrays may be let go after this file's statics would have been destroyed; hence these never are.
template <class T> union Immortal {
    T value;
    constexpr Immortal() : value() {}
    ~Immortal() {}
};

constinit Immortal<std::mutex> registry;  // guards who holds which shard, and the caches' limits
constinit std::atomic<Shard*> shards{nullptr};
constinit std::atomic<int> live{0};  // threads that hold a shard
constinit Immortal<std::array<Common, devices>> commons;
constinit std::atomic<int> poisoning{
#ifdef NDEBUG
    0
#else
    1
#endif
};  // 1, and 2 for each who wants it meanwhile

thread_local constinit Shard* current = nullptr;
thread_local constinit Account* accounts[devices] = {};  // of `current`: saves the hot path an addition
thread_local constinit bool ended = false;               // outlives the guard, which has a destructor
thread_local constinit std::uint64_t until_failure = 0;  // buffers; while it counts, `accounts` are hidden

std::size_t number(Device device) { return static_cast<std::size_t>(device); }
Common& common_of(Device device) { return commons.value[number(device)]; }

template <class Visit> void for_each_shard(Visit visit) {
    for (Shard* shard = shards.load(std::memory_order_acquire); shard != nullptr; shard = shard->next)
        visit(*shard);
}

std::size_t cached_bytes(Device device) {
    std::int64_t total = common_of(device).cached.get();
    for_each_shard([&](Shard& shard) { total += shard.account[number(device)].cached.get(); });
    return static_cast<std::size_t>(std::max<std::int64_t>(total, 0));
}

// Alone, a thread looks at the peaks only when its own sums have used up what was
// left below them; with company at every change.
void look_at_every_change(Shard& shard) {
    for (Account& account : shard.account) account.look.store(true);
}

std::int64_t cache_limit(Device device) {
    if (!caching || common_of(device).budget.load() != 0) return -1;
    return std::max(min_cache_limit, common_of(device).peak[all_classes].load());
}

void free_storage(Storage* storage) {
    raw(storage->device).give(storage->data, storage->bytes);
    delete storage;
}

void drop(Account& account) {
    account.cache.for_each(free_storage);
    account.cache.clear();
    account.brought.add(-account.cached.get());  // first, or who looks meanwhile sees the cache as in use
    account.cached.set(0);
    account.expect();
}

// Or every buffer goes through the functions named `_slowly`.
void take_short_way(bool yes) {
    for (std::size_t device = 0; device < devices; ++device)
        accounts[device] = yes && current != nullptr ? &current->account[device] : nullptr;
}

void enter() {
    const std::lock_guard lock(registry.value);
    Shard* shard = shards.load();
    while (shard != nullptr && shard->taken) shard = shard->next;
    if (shard == nullptr) {
        shard = new Shard;
        shard->next = shards.load();
        shards.store(shard, std::memory_order_release);
    }
    shard->taken = true;
    for (std::size_t device = 0; device < devices; ++device)
        shard->account[device].cache_limit.store(cache_limit(Device(device)));
    // All seq_cst: a thread that was alone either sees that it no longer is, or is told to look.
    live.fetch_add(1);
    for_each_shard(look_at_every_change);
    current = shard;
    take_short_way(until_failure == 0);
}

void leave() {
    for (Account& account : current->account) drop(account);
    const std::lock_guard lock(registry.value);
    current->taken = false;
    current = nullptr;
    take_short_way(false);
    live.fetch_sub(1);
}

struct Stay {
    Stay() { enter(); }
    ~Stay() { leave(); }
};

void stay_for_life() {
    struct Guard : Stay {
        ~Guard() { ended = true; }
    };
    static thread_local const Guard guard;
}

// Runs `action` with a shard: one for the thread's life, or just a visit once the thread is ending.
template <class Action> auto with_shard(Action action) {
    std::optional<Stay> visit;
    if (current == nullptr) {
        if (ended)
            visit.emplace();
        else
            stay_for_life();
    }
    return action();
}

// ---- counting ----

void look_at_peaks(Account& account, Device device) {
    account.look.store(false);
    const bool alone =
        live.load() <= 1;  // before the sums: who comes and goes meanwhile is told to look, or seen
    const Sums now = sums(device), own = account.sums();
    for (std::size_t row = 0; row < now.size(); ++row) {
        std::atomic<std::int64_t>& peak = common_of(device).peak[row];
        std::int64_t seen = peak.load();
        while (seen < now[row] && !peak.compare_exchange_weak(seen, now[row])) {
        }
        account.unnoticed[row] = own[row] + std::max(seen, now[row]) - now[row];
    }
    account.expect();
    if (!alone || poisoning.load()) account.look.store(true);
}

// ---- the budget ----

Storage* allocate_in_arena(Common& common, std::size_t rounded, std::size_t bytes, Device device,
                           Account& account) {
    if (Storage* storage = common.cache.take(rounded)) {
        common.cached.add(-static_cast<std::int64_t>(rounded));
        account.bring(static_cast<std::int64_t>(rounded));
        return storage;
    }
    auto storage = std::make_unique<Storage>();
    auto offset = common.arena->take(rounded);
    if (!offset) {
        common.drop_cache();
        offset = common.arena->take(rounded);
    }
    if (!offset)
        out_of_memory(bytes, device, cached_bytes(device), common.arena->free_bytes(),
                      common.arena->largest());
    storage->data = common.base + *offset;
    storage->bytes = rounded;
    storage->device = device;
    account.fresh.add(1);
    account.bring(static_cast<std::int64_t>(rounded));
    return storage.release();
}

// ---- the rarer paths ----

Storage* allocate_outside(std::size_t rounded, std::size_t bytes, Device device, Account& account) {
    auto storage = std::make_unique<Storage>();
    const std::size_t wanted =
        caching ? rounded : bytes;  // AddressSanitizer then sees an overrun of one byte
    storage->data = raw(device).grab(wanted);
    if (storage->data == nullptr) {
        drop(account);
        storage->data = raw(device).grab(wanted);
    }
    if (storage->data == nullptr) out_of_memory(bytes, device, cached_bytes(device), 0, 0);
    storage->bytes = rounded;
    storage->device = device;
    account.fresh.add(1);
    account.bring(static_cast<std::int64_t>(rounded));
    return storage.release();
}

[[gnu::noinline]] Storage* looked_at(Storage* storage, std::size_t bytes, Account& account) try {
    if (poisoning.load()) raw(storage->device).fill(storage->data, 0xFF, bytes);
    look_at_peaks(account, storage->device);
    return storage;
} catch (...) {
    recycle(storage);  // nobody else knows of it yet
    throw;
}

Storage* allocate_here(std::size_t bytes, Device device) {
    raw(device);                                   // or refuse it
    alignas(line) static std::byte nothing[line];  // an address to count from
    if (bytes == 0) {
        auto* const storage = new Storage();
        storage->data = nothing;
        storage->holders = 1;
        storage->device = device;
        return storage;
    }
    Common& common = common_of(device);
    if (until_failure != 0 && --until_failure == 0) {
        take_short_way(true);
        out_of_memory(bytes, device, cached_bytes(device), 0, report(device).largest_free);
    }
    if (bytes > max_bytes) out_of_memory(bytes, device, cached_bytes(device), 0, report(device).largest_free);
    const std::size_t rounded = whole_lines(bytes);
    Account& account = current->account[number(device)];
    Storage* storage = account.cache.take(rounded);
    if (storage != nullptr) {
        account.cached.add(-static_cast<std::int64_t>(rounded));
    } else if (common.budget.load() != 0) {
        const std::lock_guard lock(common.mutex);
        storage = common.arena ? allocate_in_arena(common, rounded, bytes, device, account)
                               : allocate_outside(rounded, bytes, device, account);
    } else {
        storage = allocate_outside(rounded, bytes, device, account);
    }
    storage->asked = bytes;
    may_touch(true, storage->data, bytes, device);
    account.hand_out(storage, 0);
    return looked_at(storage, bytes, account);
}

void recycle_here(Storage* storage) {
    if (storage->bytes == 0) {
        delete storage;
        return;
    }
    Account& account = current->account[number(storage->device)];
    if (account.take_back(storage)) return;  // whoever hid `accounts`, its limit holds: a reserve keeps all
    Common& common = common_of(storage->device);
    const auto bytes = static_cast<std::int64_t>(storage->bytes);
    const MemoryClass held_as = detail::held_as(storage);
    const auto let_go = [&] {  // last: what is in use and not held counts as temporary
        if (held_as != MemoryClass::temporary) account.hold(held_as, -bytes);
    };
    if (common.budget.load() != 0) {
        const std::lock_guard lock(common.mutex);
        if (common.in_arena(storage)) {
            may_touch(false, storage->data, storage->bytes, storage->device);
            account.bring(-bytes);
            let_go();
            if (!caching) return common.return_to_arena(storage);
            common.cached.add(static_cast<std::int64_t>(storage->bytes));
            return common.cache.put(storage, storage->bytes);
        }
    }
    // More waits here than was ever in use: the sizes have changed, and what waits will not be
    // asked for again.
    std::int64_t limit;
    {
        const std::lock_guard lock(registry.value);
        limit = cache_limit(storage->device);
        account.cache_limit.store(limit);
    }
    if (bytes > limit) {
        account.bring(-bytes);
        let_go();
        return free_storage(storage);
    }
    if (account.cached.get() + bytes > limit) drop(account);
    account.cached.add(bytes);
    let_go();
    account.cache.put(storage, storage->bytes);
}

[[gnu::noinline]] Storage* allocate_slowly(std::size_t bytes, Device device) {
    return with_shard([=] { return allocate_here(bytes, device); });
}

[[gnu::noinline]] void recycle_slowly(Storage* storage) {
    with_shard([=] { recycle_here(storage); });
}

}  // namespace

detail::Sums detail::sums(Device device) {
    Sums total{};
    for_each_shard([&](Shard& shard) {
        const Sums own = shard.account[number(device)].sums();
        for (std::size_t row = 0; row < total.size(); ++row) total[row] += own[row];
    });
    for (std::int64_t& sum : total) sum = std::max<std::int64_t>(sum, 0);  // others may be writing meanwhile
    return total;
}

Storage* detail::allocate(std::size_t bytes, Device device) {
    Account* const account = accounts[number(device)];
    const std::size_t rounded = whole_lines(bytes);  // 0 also for absurd sizes; nothing ever waits there
    Storage* const storage = account ? account->cache.take(rounded) : nullptr;
    if (storage == nullptr) [[unlikely]]
        return allocate_slowly(bytes, device);
    const bool more_than_ever = account->hand_out(storage, rounded);
    return more_than_ever ? looked_at(storage, bytes, *account) : storage;
}

void detail::recycle(Storage* storage) {
    Account* const account = accounts[number(storage->device)];
    if (account == nullptr || !account->take_back(storage)) [[unlikely]]
        recycle_slowly(storage);
}

namespace {

[[gnu::always_inline]] inline void move_in(Account& account, const Storage* storage, MemoryClass before,
                                           MemoryClass now) {
    const auto bytes = static_cast<std::int64_t>(storage->bytes);
    if (now != MemoryClass::temporary) account.hold(now, bytes);
    if (before != MemoryClass::temporary) account.hold(before, -bytes);
    if (account.grown(now) || account.look.load(std::memory_order_relaxed)) [[unlikely]]
        look_at_peaks(account, storage->device);
}

// The bytes of a buffer go from one row of the ledger to another.
[[gnu::always_inline]] inline void move(const Storage* storage, MemoryClass before, MemoryClass now) {
    Account* const account = accounts[number(storage->device)];
    if (account == nullptr) [[unlikely]]
        return with_shard([=] { move_in(current->account[number(storage->device)], storage, before, now); });
    move_in(*account, storage, before, now);
}

}  // namespace

void detail::reclassify(Storage* storage, MemoryClass held_as) {
    std::uint64_t before = storage->holders.load(), now = 0;
    do now = before << 2 >> 2 | class_bits(held_as);
    while (!storage->holders.compare_exchange_weak(before, now));
    move(storage, class_of(before), class_of(now));
}

void detail::saved_first(Storage* storage, std::uint64_t holders_before) {
    if (sum_saved && storage->device == Device::cpu) [[unlikely]]
        detail::note_checksum(storage);
    else if (storage->summed.load(std::memory_order_relaxed)) [[unlikely]]
        storage->summed.store(false, std::memory_order_relaxed);
    if (class_of(holders_before) == MemoryClass::temporary)
        move(storage, MemoryClass::temporary, MemoryClass::saved);
}

void detail::unsaved_last(Storage* storage) { move(storage, MemoryClass::saved, MemoryClass::temporary); }

std::size_t budget(Device device) { return common_of(device).budget.load(); }

std::size_t in_use(Device device) { return static_cast<std::size_t>(sums(device)[all_classes]); }
std::size_t peak(Device device) {
    return static_cast<std::size_t>(common_of(device).peak[all_classes].load());
}

void reset_peak(Device device) {
    const Sums now = sums(device);
    for (std::size_t row = 0; row < now.size(); ++row) common_of(device).peak[row].store(now[row]);
    for_each_shard(look_at_every_change);
}

Report report(Device device) {
    Report now;
    Common& common = common_of(device);
    const Sums held = sums(device);
    now.in_use = static_cast<std::size_t>(held[all_classes]);
    now.peak = peak(device);
    now.packing = device == Device::cpu ? packing.load(std::memory_order_relaxed) : 0;
    for (std::size_t row = 0; row < detail::memory_classes; ++row) {
        now.in_use_by[row] = static_cast<std::size_t>(held[row]);
        now.peak_by[row] = static_cast<std::size_t>(common.peak[row].load());
    }
    std::uint64_t fresh = 0;
    for_each_shard([&](Shard& shard) {
        fresh += shard.account[number(device)].fresh.get();
        now.allocations += shard.account[number(device)].allocations.get();
    });
    now.reused = now.allocations - std::min(fresh, now.allocations);
    const std::lock_guard lock(common.mutex);
    now.cached = cached_bytes(device);
    now.budget = common.budget.load();
    if (common.arena) {
        Arena without_cache = *common.arena;  // cached blocks are dropped before an allocation fails
        common.cache.for_each(
            [&](const Storage* storage) { without_cache.give(common.place(storage), storage->bytes); });
        now.largest_free = without_cache.largest();
    }
    return now;
}

void set_budget(std::size_t bytes, Device device) {
    const Raw& device_memory = raw(device);
    const auto refuse = [&](std::size_t held, const char* how) {
        throw Error("[memory] cannot set a budget of " + std::to_string(bytes) + " bytes on " +
                    tally::to_string(device) + " while " + std::to_string(held) + " bytes are " + how);
    };
    drop_cache(device);
    const std::lock_guard registry_lock(registry.value);
    Common& common = common_of(device);
    const std::lock_guard lock(common.mutex);
    if (const std::size_t held = in_use(device)) refuse(held, "in use; let go of every array first");
    if (const std::size_t held = cached_bytes(device))
        refuse(held, "cached by other threads; let these end first");
    std::byte* base = nullptr;
    std::optional<Arena> arena;
    if (bytes != 0) {
        arena.emplace(bytes / line * line);
        if (bytes <= max_bytes) base = static_cast<std::byte*>(device_memory.grab(whole_lines(bytes)));
        if (base == nullptr)
            throw OutOfMemory("[memory] cannot set a budget of " + std::to_string(bytes) + " bytes (" +
                                  bytes_in_words(bytes) + ") on " + tally::to_string(device) +
                                  ": the device itself has less",
                              device, bytes, 0);
        may_touch(false, base, whole_lines(bytes), device);
    }
    if (common.base != nullptr) {
        may_touch(true, common.base, whole_lines(common.budget.load()), device);
        device_memory.give(common.base, whole_lines(common.budget.load()));
    }
    common.base = base;
    common.arena = std::move(arena);
    common.budget.store(bytes);
    for_each_shard(
        [&](Shard& shard) { shard.account[number(device)].cache_limit.store(cache_limit(device)); });
}

void drop_cache(Device device) {
    if (current != nullptr) drop(current->account[number(device)]);
    const std::lock_guard lock(common_of(device).mutex);
    common_of(device).drop_cache();
}

void fail_allocation(std::uint64_t n) {
    until_failure = n;
    take_short_way(n == 0);
}

void detail::poison(Storage* storage) {
    raw(storage->device).fill(storage->data, 0xFF, caching ? storage->bytes : storage->asked);
}

bool set_poison(bool on) {
    const int before = on ? poisoning.fetch_or(1) : poisoning.fetch_and(~1);
    for_each_shard(look_at_every_change);
    return before & 1;
}

void detail::poison_meanwhile(bool begins) {
    poisoning.fetch_add(begins ? 2 : -2);
    for_each_shard(look_at_every_change);
}

}  // namespace tally::memory
