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

#include "tally/base/alignment.hpp"
#include "tally/base/text.hpp"
#include "tally/memory/device_allocator.hpp"
#include "tally/memory/memory_thread_cache.hpp"

#if TALLY_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace tally::memory {
namespace {

using namespace detail;

constexpr std::size_t max_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - line;
constexpr std::int64_t min_cache_limit = 64 << 20;

// Tells AddressSanitizer. On the host alone: a device works later, and on what was let go, too.
void asan_poison([[maybe_unused]] bool yes, [[maybe_unused]] const void* data,
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
constinit std::atomic<ThreadCache*> shards{nullptr};
constinit std::atomic<int> live{0};  // threads that hold a shard
constinit Immortal<std::array<DeviceState, devices>> commons;
constinit std::atomic<int> poisoning{
#ifdef NDEBUG
    0
#else
    1
#endif
};  // 1, and 2 for each who wants it meanwhile

thread_local constinit ThreadCache* current = nullptr;
thread_local constinit ThreadStats* accounts[devices] = {};  // of `current`: saves the hot path an addition
thread_local constinit bool ended = false;                   // outlives the guard, which has a destructor
thread_local constinit std::uint64_t until_failure = 0;  // buffers; while it counts, `accounts` are hidden

std::size_t number(Device device) { return static_cast<std::size_t>(device); }
DeviceState& common_of(Device device) { return commons.value[number(device)]; }

template <class Visit> void for_each_shard(Visit visit) {
    for (ThreadCache* shard = shards.load(std::memory_order_acquire); shard != nullptr; shard = shard->next)
        visit(*shard);
}

std::size_t cached_bytes(Device device) {
    std::int64_t total = common_of(device).cached.get();
    for_each_shard([&](ThreadCache& shard) { total += shard.account[number(device)].cached.get(); });
    return static_cast<std::size_t>(std::max<std::int64_t>(total, 0));
}

// Alone, a thread looks at the peaks only when its own sums have used up what was
// left below them; with company at every change.
void look_at_every_change(ThreadCache& shard) {
    for (ThreadStats& account : shard.account) account.check_peaks.store(true);
}

std::int64_t cache_limit(Device device) {
    if (!caching || common_of(device).budget.load() != 0) return -1;
    return std::max(min_cache_limit, common_of(device).peak[all_classes].load());
}

void free_storage(Storage* storage) {
    raw(storage->device).free(storage->data, storage->bytes);
    delete storage;
}

void drop(ThreadStats& account) {
    account.cache.for_each(free_storage);
    account.cache.clear();
    account.acquired.add(-account.cached.get());  // first, or who looks meanwhile sees the cache as in use
    account.cached.set(0);
    account.update_headroom();
}

// Or every buffer goes through the functions named `_slowly`.
void enable_fast_path(bool yes) {
    for (std::size_t device = 0; device < devices; ++device)
        accounts[device] = yes && current != nullptr ? &current->account[device] : nullptr;
}

void register_thread() {
    const std::lock_guard lock(registry.value);
    ThreadCache* shard = shards.load();
    while (shard != nullptr && shard->taken) shard = shard->next;
    if (shard == nullptr) {
        shard = new ThreadCache;
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
    enable_fast_path(until_failure == 0);
}

void unregister_thread() {
    for (ThreadStats& account : current->account) drop(account);
    const std::lock_guard lock(registry.value);
    current->taken = false;
    current = nullptr;
    enable_fast_path(false);
    live.fetch_sub(1);
}

struct ThreadRegistration {
    ThreadRegistration() { register_thread(); }
    ~ThreadRegistration() { unregister_thread(); }
};

void keep_registered() {
    struct Guard : ThreadRegistration {
        ~Guard() { ended = true; }
    };
    static thread_local const Guard guard;
}

// Runs `action` with a shard: one for the thread's life, or just a visit once the thread is ending.
template <class Action> auto with_shard(Action action) {
    std::optional<ThreadRegistration> visit;
    if (current == nullptr) {
        if (ended)
            visit.emplace();
        else
            keep_registered();
    }
    return action();
}

// ---- counting ----

void look_at_peaks(ThreadStats& account, Device device) {
    account.check_peaks.store(false);
    const bool alone =
        live.load() <= 1;  // before the sums: who comes and goes meanwhile is told to look, or seen
    const Sums now = sums(device), own = account.sums();
    for (std::size_t row = 0; row < now.size(); ++row) {
        std::atomic<std::int64_t>& peak = common_of(device).peak[row];
        std::int64_t seen = peak.load();
        while (seen < now[row] && !peak.compare_exchange_weak(seen, now[row])) {
        }
        account.headroom[row] = own[row] + std::max(seen, now[row]) - now[row];
    }
    account.update_headroom();
    if (!alone || poisoning.load()) account.check_peaks.store(true);
}

// ---- the budget ----

Storage* allocate_in_arena(DeviceState& common, std::size_t rounded, std::size_t bytes, Device device,
                           ThreadStats& account) {
    if (Storage* storage = common.cache.take(rounded)) {
        common.cached.add(-static_cast<std::int64_t>(rounded));
        account.add_acquired(static_cast<std::int64_t>(rounded));
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
    account.add_acquired(static_cast<std::int64_t>(rounded));
    return storage.release();
}

// ---- the rarer paths ----

Storage* allocate_from_system(std::size_t rounded, std::size_t bytes, Device device, ThreadStats& account) {
    auto storage = std::make_unique<Storage>();
    const std::size_t wanted =
        caching ? rounded : bytes;  // AddressSanitizer then sees an overrun of one byte
    storage->data = raw(device).allocate(wanted);
    if (storage->data == nullptr) {
        drop(account);
        storage->data = raw(device).allocate(wanted);
    }
    if (storage->data == nullptr) out_of_memory(bytes, device, cached_bytes(device), 0, 0);
    storage->bytes = rounded;
    storage->device = device;
    account.fresh.add(1);
    account.add_acquired(static_cast<std::int64_t>(rounded));
    return storage.release();
}

[[gnu::noinline]] Storage* record_peak(Storage* storage, std::size_t bytes, ThreadStats& account) try {
    if (poisoning.load()) raw(storage->device).fill(storage->data, 0xFF, bytes);
    look_at_peaks(account, storage->device);
    return storage;
} catch (...) {
    return_to_cache(storage);  // nobody else knows of it yet
    throw;
}

Storage* allocate_registered(std::size_t bytes, Device device) {
    raw(device);                                   // or refuse it
    alignas(line) static std::byte nothing[line];  // an address to count from
    if (bytes == 0) {
        auto* const storage = new Storage();
        storage->data = nothing;
        storage->ref_count = 1;
        storage->device = device;
        return storage;
    }
    DeviceState& common = common_of(device);
    if (until_failure != 0 && --until_failure == 0) {
        enable_fast_path(true);
        out_of_memory(bytes, device, cached_bytes(device), 0, report(device).largest_free);
    }
    if (bytes > max_bytes) out_of_memory(bytes, device, cached_bytes(device), 0, report(device).largest_free);
    const std::size_t rounded = round_up_to_line(bytes);
    ThreadStats& account = current->account[number(device)];
    Storage* storage = account.cache.take(rounded);
    if (storage != nullptr) {
        account.cached.add(-static_cast<std::int64_t>(rounded));
    } else if (common.budget.load() != 0) {
        const std::lock_guard lock(common.mutex);
        storage = common.arena ? allocate_in_arena(common, rounded, bytes, device, account)
                               : allocate_from_system(rounded, bytes, device, account);
    } else {
        storage = allocate_from_system(rounded, bytes, device, account);
    }
    storage->requested_bytes = bytes;
    asan_poison(true, storage->data, bytes, device);
    account.on_alloc(storage, 0);
    return record_peak(storage, bytes, account);
}

void recycle_here(Storage* storage) {
    if (storage->bytes == 0) {
        delete storage;
        return;
    }
    ThreadStats& account = current->account[number(storage->device)];
    if (account.on_free(storage)) return;  // whoever hid `accounts`, its limit holds: a reserve keeps all
    DeviceState& common = common_of(storage->device);
    const auto bytes = static_cast<std::int64_t>(storage->bytes);
    const MemoryClass memory_class = detail::memory_class(storage);
    const auto let_go = [&] {  // last: what is in use and not held counts as temporary
        if (memory_class != MemoryClass::temporary) account.hold(memory_class, -bytes);
    };
    if (common.budget.load() != 0) {
        const std::lock_guard lock(common.mutex);
        if (common.in_arena(storage)) {
            asan_poison(false, storage->data, storage->bytes, storage->device);
            account.add_acquired(-bytes);
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
        account.add_acquired(-bytes);
        let_go();
        return free_storage(storage);
    }
    if (account.cached.get() + bytes > limit) drop(account);
    account.cached.add(bytes);
    let_go();
    account.cache.put(storage, storage->bytes);
}

[[gnu::noinline]] Storage* allocate_slow(std::size_t bytes, Device device) {
    return with_shard([=] { return allocate_registered(bytes, device); });
}

[[gnu::noinline]] void recycle_slowly(Storage* storage) {
    with_shard([=] { recycle_here(storage); });
}

}  // namespace

detail::Sums detail::sums(Device device) {
    Sums total{};
    for_each_shard([&](ThreadCache& shard) {
        const Sums own = shard.account[number(device)].sums();
        for (std::size_t row = 0; row < total.size(); ++row) total[row] += own[row];
    });
    for (std::int64_t& sum : total) sum = std::max<std::int64_t>(sum, 0);  // others may be writing meanwhile
    return total;
}

Storage* detail::allocate(std::size_t bytes, Device device) {
    ThreadStats* const account = accounts[number(device)];
    const std::size_t rounded = round_up_to_line(bytes);  // 0 also for absurd sizes; nothing ever waits there
    Storage* const storage = account ? account->cache.take(rounded) : nullptr;
    if (storage == nullptr) [[unlikely]]
        return allocate_slow(bytes, device);
    const bool more_than_ever = account->on_alloc(storage, rounded);
    return more_than_ever ? record_peak(storage, bytes, *account) : storage;
}

void detail::return_to_cache(Storage* storage) {
    ThreadStats* const account = accounts[number(storage->device)];
    if (account == nullptr || !account->on_free(storage)) [[unlikely]]
        recycle_slowly(storage);
}

namespace {

[[gnu::always_inline]] inline void move_in(ThreadStats& account, const Storage* storage, MemoryClass before,
                                           MemoryClass now) {
    const auto bytes = static_cast<std::int64_t>(storage->bytes);
    if (now != MemoryClass::temporary) account.hold(now, bytes);
    if (before != MemoryClass::temporary) account.hold(before, -bytes);
    if (account.exceeds_headroom(now) || account.check_peaks.load(std::memory_order_relaxed)) [[unlikely]]
        look_at_peaks(account, storage->device);
}

// The bytes of a buffer go from one row of the ledger to another.
[[gnu::always_inline]] inline void move(const Storage* storage, MemoryClass before, MemoryClass now) {
    ThreadStats* const account = accounts[number(storage->device)];
    if (account == nullptr) [[unlikely]]
        return with_shard([=] { move_in(current->account[number(storage->device)], storage, before, now); });
    move_in(*account, storage, before, now);
}

}  // namespace

void detail::reclassify(Storage* storage, MemoryClass memory_class) {
    std::uint64_t before = storage->ref_count.load(), now = 0;
    do now = before << 2 >> 2 | class_bits(memory_class);
    while (!storage->ref_count.compare_exchange_weak(before, now));
    move(storage, memory_class_of(before), memory_class_of(now));
}

void detail::on_first_save(Storage* storage, std::uint64_t ref_count_before) {
    if (checksum_saved && storage->device == Device::cpu) [[unlikely]]
        detail::record_checksum(storage);
    else if (storage->has_checksum.load(std::memory_order_relaxed)) [[unlikely]]
        storage->has_checksum.store(false, std::memory_order_relaxed);
    if (memory_class_of(ref_count_before) == MemoryClass::temporary)
        move(storage, MemoryClass::temporary, MemoryClass::saved);
}

void detail::on_last_unsave(Storage* storage) { move(storage, MemoryClass::saved, MemoryClass::temporary); }

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
    DeviceState& common = common_of(device);
    const Sums held = sums(device);
    now.in_use = static_cast<std::size_t>(held[all_classes]);
    now.peak = peak(device);
    now.packing = device == Device::cpu ? packing_buffer_bytes.load(std::memory_order_relaxed) : 0;
    for (std::size_t row = 0; row < detail::memory_classes; ++row) {
        now.in_use_by[row] = static_cast<std::size_t>(held[row]);
        now.peak_by[row] = static_cast<std::size_t>(common.peak[row].load());
    }
    std::uint64_t fresh = 0;
    for_each_shard([&](ThreadCache& shard) {
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
    DeviceState& common = common_of(device);
    const std::lock_guard lock(common.mutex);
    if (const std::size_t held = in_use(device)) refuse(held, "in use; let go of every array first");
    if (const std::size_t held = cached_bytes(device))
        refuse(held, "cached by other threads; let these end first");
    std::byte* base = nullptr;
    std::optional<Arena> arena;
    if (bytes != 0) {
        arena.emplace(bytes / line * line);
        if (bytes <= max_bytes)
            base = static_cast<std::byte*>(device_memory.allocate(round_up_to_line(bytes)));
        if (base == nullptr)
            throw OutOfMemory("[memory] cannot set a budget of " + std::to_string(bytes) + " bytes (" +
                                  bytes_in_words(bytes) + ") on " + tally::to_string(device) +
                                  ": the device itself has less",
                              device, bytes, 0);
        asan_poison(false, base, round_up_to_line(bytes), device);
    }
    if (common.base != nullptr) {
        asan_poison(true, common.base, round_up_to_line(common.budget.load()), device);
        device_memory.free(common.base, round_up_to_line(common.budget.load()));
    }
    common.base = base;
    common.arena = std::move(arena);
    common.budget.store(bytes);
    for_each_shard(
        [&](ThreadCache& shard) { shard.account[number(device)].cache_limit.store(cache_limit(device)); });
}

void drop_cache(Device device) {
    if (current != nullptr) drop(current->account[number(device)]);
    const std::lock_guard lock(common_of(device).mutex);
    common_of(device).drop_cache();
}

void fail_allocation(std::uint64_t n) {
    until_failure = n;
    enable_fast_path(n == 0);
}

void detail::poison(Storage* storage) {
    raw(storage->device).fill(storage->data, 0xFF, caching ? storage->bytes : storage->requested_bytes);
}

bool set_poison(bool on) {
    const int before = on ? poisoning.fetch_or(1) : poisoning.fetch_and(~1);
    for_each_shard(look_at_every_change);
    return before & 1;
}

void detail::hold_poison(bool begins) {
    poisoning.fetch_add(begins ? 2 : -2);
    for_each_shard(look_at_every_change);
}

}  // namespace tally::memory
