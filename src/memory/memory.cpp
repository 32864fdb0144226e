// Allocates, counts and frees buffers.
//
// Each thread has its own free lists and byte counters. A thread can therefore reuse a buffer in a few
// nanoseconds, without a lock or an atomic read-modify-write. Functions named `..._slow` handle other cases.
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

// Tells AddressSanitizer whether host memory may be used. Device memory is not checked, because a kernel that
// runs later may still use freed memory.
void asan_poison([[maybe_unused]] bool usable, [[maybe_unused]] const void* data,
                 [[maybe_unused]] std::size_t bytes, [[maybe_unused]] Device device) {
#if TALLY_ASAN
    if (device == Device::cpu)
        usable ? __asan_unpoison_memory_region(data, bytes) : __asan_poison_memory_region(data, bytes);
#endif
}

// ---- threads ----

// A `NeverDestroyed` object is never destroyed, because static arrays may still use it at program exit.
template <class T> union NeverDestroyed {
    T value;
    constexpr NeverDestroyed() : value() {}
    ~NeverDestroyed() {}
};

constinit NeverDestroyed<std::mutex> registry;  // guards ThreadCache::taken and the cache limits
constinit std::atomic<ThreadCache*> thread_caches{nullptr};
constinit std::atomic<int> live{0};  // threads that have a ThreadCache
constinit NeverDestroyed<std::array<DeviceState, devices>> device_states;
constinit std::atomic<int> poisoning{
#ifdef NDEBUG
    0
#else
    1
#endif
};  // 1 for set_poison(), plus 2 for each hold_poison()

thread_local constinit ThreadCache* current = nullptr;
thread_local constinit ThreadStats* accounts[devices] = {};  // of `current`; null: use the slow path
thread_local constinit bool ended = false;                   // outlives the guard, which has a destructor
thread_local constinit std::uint64_t until_failure = 0;      // allocations; if not 0, `accounts` are null

std::size_t number(Device device) { return static_cast<std::size_t>(device); }
DeviceState& state_of(Device device) { return device_states.value[number(device)]; }

template <class Visit> void for_each_thread(Visit visit) {
    for (ThreadCache* thread = thread_caches.load(std::memory_order_acquire); thread != nullptr;
         thread = thread->next)
        visit(*thread);
}

std::size_t cached_bytes(Device device) {
    std::int64_t total = state_of(device).cached.get();
    for_each_thread([&](ThreadCache& thread) { total += thread.account[number(device)].cached.get(); });
    return static_cast<std::size_t>(std::max<std::int64_t>(total, 0));
}

void check_next_changes() {  // each thread then updates the peaks at its next change
    for_each_thread([](ThreadCache& thread) {
        for (ThreadStats& account : thread.account) account.check_peaks.store(true);
    });
}

std::int64_t cache_limit(Device device) {
    if (!caching || state_of(device).budget.load() != 0) return -1;
    return std::max(min_cache_limit, state_of(device).peak[all_classes].load());
}

void free_storage(Storage* storage) {
    raw(storage->device).free(storage->data, storage->bytes);
    delete storage;
}

void drop(ThreadStats& account) {
    account.cache.for_each(free_storage);
    account.cache.clear();
    account.add_acquired(-account.cached.get());  // first, so that cached bytes never count as in use
    account.cached.set(0);
    if (live.load() > 1) check_next_changes();  // another thread may have read sums between these changes
}

// While the fast path is disabled, allocate_slow() and recycle_slow() allocate and free every buffer.
void enable_fast_path(bool yes) {
    for (std::size_t device = 0; device < devices; ++device)
        accounts[device] = yes && current != nullptr ? &current->account[device] : nullptr;
}

void register_thread() {
    const std::lock_guard lock(registry.value);
    ThreadCache* thread = thread_caches.load();
    while (thread != nullptr && thread->taken) thread = thread->next;
    if (thread == nullptr) {
        thread = new ThreadCache;
        thread->next = thread_caches.load();
        thread_caches.store(thread, std::memory_order_release);
    }
    thread->taken = true;
    for (std::size_t device = 0; device < devices; ++device)
        thread->account[device].cache_limit.store(cache_limit(Device(device)));
    // These operations are seq_cst, so that a thread that was alone sees the new `live` or `check_peaks`.
    live.fetch_add(1);
    check_next_changes();
    current = thread;
    enable_fast_path(until_failure == 0);
}

void unregister_thread() {
    for (ThreadStats& account : current->account) drop(account);  // also ends the limits of this thread
    const std::lock_guard lock(registry.value);
    current->taken = false;
    current = nullptr;
    enable_fast_path(false);
    if (live.fetch_sub(1) == 2) check_next_changes();  // the other thread is now alone
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

// Runs `action` in a thread that has a `ThreadCache`. The thread keeps the cache until the thread ends. A
// thread that is already ending releases the cache after the call.
template <class Action> auto with_thread_cache(Action action) {
    std::optional<ThreadRegistration> temporary;
    if (current == nullptr) {
        if (ended)
            temporary.emplace();
        else
            keep_registered();
    }
    return action();
}

// ---- counting ----

std::int64_t raise_peak(std::atomic<std::int64_t>& peak, std::int64_t now) {  // returns the peak
    std::int64_t seen = peak.load();
    while (seen < now && !peak.compare_exchange_weak(seen, now)) {
    }
    return std::max(seen, now);
}

// ---- the budget ----

Storage* allocate_in_arena(DeviceState& state, std::size_t rounded, std::size_t bytes, Device device,
                           ThreadStats& account) {
    if (Storage* storage = state.cache.take(rounded)) {
        state.cached.add(-static_cast<std::int64_t>(rounded));
        account.add_acquired(static_cast<std::int64_t>(rounded));
        return storage;
    }
    auto storage = std::make_unique<Storage>();
    auto offset = state.arena->take(rounded);
    if (!offset) {
        state.drop_cache();
        offset = state.arena->take(rounded);
    }
    if (!offset)
        out_of_memory(bytes, device, cached_bytes(device), state.arena->free_bytes(), state.arena->largest());
    storage->data = state.base + *offset;
    storage->bytes = rounded;
    storage->device = device;
    account.fresh.add(1);
    account.add_acquired(static_cast<std::int64_t>(rounded));
    return storage.release();
}

// ---- the slow paths ----

Storage* allocate_from_system(std::size_t rounded, std::size_t bytes, Device device, ThreadStats& account) {
    auto storage = std::make_unique<Storage>();
    const std::size_t size = caching ? rounded : bytes;  // AddressSanitizer then detects any overrun
    storage->data = raw(device).allocate(size);
    if (storage->data == nullptr) {
        drop(account);
        storage->data = raw(device).allocate(size);
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
    update_peaks(account, storage->device);
    return storage;
} catch (...) {
    return_to_cache(storage);  // this is the only reference
    throw;
}

Storage* allocate_registered(std::size_t bytes, Device device) {
    raw(device);                                   // throws if the device is not available
    alignas(line) static std::byte nothing[line];  // the address of buffers without bytes
    if (bytes == 0) {
        auto* const storage = new Storage();
        storage->data = nothing;
        storage->ref_count = 1;
        storage->device = device;
        return storage;
    }
    DeviceState& state = state_of(device);
    const bool fails = until_failure != 0 && --until_failure == 0;
    if (fails) enable_fast_path(true);
    if (fails || bytes > max_bytes)
        out_of_memory(bytes, device, cached_bytes(device), 0, report(device).largest_free);
    const std::size_t rounded = round_up_to_line(bytes);
    ThreadStats& account = current->account[number(device)];
    Storage* storage = account.cache.take(rounded);
    if (storage != nullptr) {
        account.cached.add(-static_cast<std::int64_t>(rounded));
    } else if (state.budget.load() != 0) {
        const std::lock_guard lock(state.mutex);
        storage = state.arena ? allocate_in_arena(state, rounded, bytes, device, account)
                              : allocate_from_system(rounded, bytes, device, account);
    } else {
        storage = allocate_from_system(rounded, bytes, device, account);
    }
    storage->requested_bytes = bytes;
    asan_poison(true, storage->data, bytes, device);
    account.on_alloc(storage, 0);
    return record_peak(storage, bytes, account);
}

void recycle_registered(Storage* storage) {
    if (storage->bytes == 0) {
        delete storage;
        return;
    }
    ThreadStats& account = current->account[number(storage->device)];
    if (account.on_free(storage)) return;  // only the fast path was disabled
    DeviceState& state = state_of(storage->device);
    const auto bytes = static_cast<std::int64_t>(storage->bytes);
    const MemoryClass memory_class = detail::memory_class(storage);
    const auto uncount = [&] {  // call this last: until then, the bytes count as temporary
        account.move(memory_class, MemoryClass::temporary, bytes, storage->device);
    };
    if (state.budget.load() != 0) {
        const std::lock_guard lock(state.mutex);
        if (state.in_arena(storage)) {
            asan_poison(false, storage->data, storage->bytes, storage->device);
            account.add_acquired(-bytes);
            uncount();
            if (!caching) return state.return_to_arena(storage);
            state.cached.add(static_cast<std::int64_t>(storage->bytes));
            return state.cache.put(storage, storage->bytes);
        }
    }
    // The cache is freed if more bytes are cached than were ever in use, because the sizes must have changed.
    {
        const std::lock_guard lock(registry.value);
        account.cache_limit.store(cache_limit(storage->device));
    }
    const std::int64_t limit = account.cache_limit.load();
    if (bytes > limit) {
        account.add_acquired(-bytes);
        uncount();
        return free_storage(storage);
    }
    if (account.cached.get() + bytes > limit) drop(account);
    account.cached.add(bytes);
    uncount();
    account.cache.put(storage, storage->bytes);
}

[[gnu::always_inline]] inline void count_change(Device device, std::size_t size, MemoryClass before,
                                                MemoryClass now) {
    const auto bytes = static_cast<std::int64_t>(size);
    if (ThreadStats* const account = accounts[number(device)]) [[likely]]
        return account->move(before, now, bytes, device);
    with_thread_cache([=] { current->account[number(device)].move(before, now, bytes, device); });
}

[[gnu::noinline]] Storage* allocate_slow(std::size_t bytes, Device device) {
    return with_thread_cache([=] { return allocate_registered(bytes, device); });
}

[[gnu::noinline]] void recycle_slow(Storage* storage) {
    with_thread_cache([=] { recycle_registered(storage); });
}

}  // namespace

// Lets this thread use its share of the room that the limits of the other threads leave below each peak, and at least
// hidden_growth if there are other threads. If this share is small although the others use much less than their limits,
// makes all threads set new limits at their next change.
void detail::update_peaks(ThreadStats& account, Device device) {
    const std::lock_guard lock(state_of(device).setting_limits);
    account.check_peaks.store(false);
    // Read `live` before the sums: a thread that registers after the read sets check_peaks.
    const int threads = live.load();
    Sums in_use{}, limits{}, headroom{};
    for_each_thread([&](ThreadCache& thread) {
        const ThreadStats& other = thread.account[number(device)];
        const bool has_limits = &other != &account && !other.check_peaks.load();
        const Sums now = other.sums();
        for (std::size_t row = 0; row < now.size(); ++row) {
            in_use[row] += now[row];
            limits[row] += has_limits ? std::max(now[row], other.limit[row].get()) : now[row];
        }
    });
    const std::int64_t least = threads > 1 ? hidden_growth : 0;
    for (std::size_t row = 0; row < in_use.size(); ++row) {
        const std::int64_t peak = raise_peak(state_of(device).peak[row], in_use[row]);
        const std::int64_t share = (peak - limits[row]) / threads;
        headroom[row] = std::max(share, least);
        // Each of the others always has hidden_growth, which this thread cannot take.
        if (share < least && limits[row] - in_use[row] > least * (threads - 1)) check_next_changes();
    }
    account.set_headroom(headroom);
    if (poisoning.load()) account.check_peaks.store(true);
}

detail::Sums detail::sums(Device device) {
    Sums total{};
    for_each_thread([&](ThreadCache& thread) {
        const Sums own = thread.account[number(device)].sums();
        for (std::size_t row = 0; row < total.size(); ++row) total[row] += own[row];
    });
    for (std::int64_t& sum : total) sum = std::max<std::int64_t>(sum, 0);  // other threads may be writing
    return total;
}

Storage* detail::allocate(std::size_t bytes, Device device) {
    ThreadStats* const account = accounts[number(device)];
    const std::size_t rounded = round_up_to_line(bytes);  // 0 also on overflow: list 0 is empty
    Storage* const storage = account ? account->cache.take(rounded) : nullptr;
    if (storage == nullptr) [[unlikely]]
        return allocate_slow(bytes, device);
    const bool may_be_peak = account->on_alloc(storage, rounded);
    return may_be_peak ? record_peak(storage, bytes, *account) : storage;
}

void detail::return_to_cache(Storage* storage) {
    ThreadStats* const account = accounts[number(storage->device)];
    if (account == nullptr || !account->on_free(storage)) [[unlikely]]
        recycle_slow(storage);
}

void detail::count_class_change(Device device, std::size_t bytes, MemoryClass before, MemoryClass now) {
    count_change(device, bytes, before, now);
}

void detail::reclassify(Storage* storage, MemoryClass memory_class) {
    std::uint64_t before = storage->ref_count.load(), now = 0;
    do now = before << 2 >> 2 | class_bits(memory_class);
    while (!storage->ref_count.compare_exchange_weak(before, now));
    count_change(storage->device, storage->bytes, memory_class_of(before), memory_class_of(now));
}

void detail::on_first_save(Storage* storage, std::uint64_t ref_count_before) {
    if (checksum_saved && storage->device == Device::cpu) [[unlikely]]
        detail::record_checksum(storage);
    else if (storage->has_checksum.load(std::memory_order_relaxed)) [[unlikely]]
        storage->has_checksum.store(false, std::memory_order_relaxed);
    if (memory_class_of(ref_count_before) == MemoryClass::temporary)
        count_change(storage->device, storage->bytes, MemoryClass::temporary, MemoryClass::saved);
}

std::size_t detail::budget(Device device) { return state_of(device).budget.load(); }

std::size_t in_use(Device device) { return static_cast<std::size_t>(sums(device)[all_classes]); }
std::size_t peak(Device device) {
    const Sums now = sums(device);
    for (std::size_t row = 0; row < now.size(); ++row) raise_peak(state_of(device).peak[row], now[row]);
    return static_cast<std::size_t>(state_of(device).peak[all_classes].load());
}

void reset_peak(Device device) {
    const Sums now = sums(device);
    for (std::size_t row = 0; row < now.size(); ++row) state_of(device).peak[row].store(now[row]);
    check_next_changes();
}

Report report(Device device) {
    Report now;
    DeviceState& state = state_of(device);
    const Sums held = sums(device);
    now.in_use = static_cast<std::size_t>(held[all_classes]);
    now.peak = peak(device);
    now.packing = device == Device::cpu ? packing_buffer_bytes.load(std::memory_order_relaxed) : 0;
    for (std::size_t row = 0; row < detail::memory_classes; ++row) {
        now.in_use_by[row] = static_cast<std::size_t>(held[row]);
        now.peak_by[row] = static_cast<std::size_t>(state.peak[row].load());
    }
    std::uint64_t fresh = 0;
    for_each_thread([&](ThreadCache& thread) {
        fresh += thread.account[number(device)].fresh.get();
        now.allocations += thread.account[number(device)].allocations.get();
    });
    now.reused = now.allocations - std::min(fresh, now.allocations);
    const std::lock_guard lock(state.mutex);
    now.cached = cached_bytes(device);
    now.budget = state.budget.load();
    if (state.arena) {
        Arena without_cache = *state.arena;  // cached blocks are dropped before an allocation fails
        state.cache.for_each(
            [&](const Storage* storage) { without_cache.give(state.place(storage), storage->bytes); });
        now.largest_free = without_cache.largest();
    }
    return now;
}

void set_budget(std::size_t bytes, Device device) {
    const Raw& device_memory = raw(device);
    const auto fail = [&](std::size_t held, const char* how) {
        throw Error("[memory] cannot set a budget of " + std::to_string(bytes) + " bytes on " +
                    tally::to_string(device) + " while " + std::to_string(held) + " bytes are " + how);
    };
    drop_cache(device);
    const std::lock_guard registry_lock(registry.value);
    DeviceState& state = state_of(device);
    const std::lock_guard lock(state.mutex);
    if (const std::size_t held = in_use(device)) fail(held, "in use; free all arrays first");
    if (const std::size_t held = cached_bytes(device))
        fail(held, "cached by other threads; end these threads first");
    std::byte* base = nullptr;
    std::optional<Arena> arena;
    if (bytes != 0) {
        arena.emplace(bytes / line * line);
        if (bytes <= max_bytes)
            base = static_cast<std::byte*>(device_memory.allocate(round_up_to_line(bytes)));
        if (base == nullptr)
            throw OutOfMemory("[memory] cannot set a budget of " + std::to_string(bytes) + " bytes (" +
                                  tally::detail::format_bytes(bytes) + ") on " + tally::to_string(device) +
                                  ": the device itself has less",
                              device, bytes, 0);
        asan_poison(false, base, round_up_to_line(bytes), device);
    }
    if (state.base != nullptr) {
        asan_poison(true, state.base, round_up_to_line(state.budget.load()), device);
        device_memory.free(state.base, round_up_to_line(state.budget.load()));
    }
    state.base = base;
    state.arena = std::move(arena);
    state.budget.store(bytes);
    for_each_thread(
        [&](ThreadCache& thread) { thread.account[number(device)].cache_limit.store(cache_limit(device)); });
}

void drop_cache(Device device) {
    if (current != nullptr) drop(current->account[number(device)]);
    const std::lock_guard lock(state_of(device).mutex);
    state_of(device).drop_cache();
}

void detail::fail_allocation(std::uint64_t n) {
    until_failure = n;
    enable_fast_path(n == 0);
}

void detail::poison(Storage* storage) {
    raw(storage->device).fill(storage->data, 0xFF, caching ? storage->bytes : storage->requested_bytes);
}

bool detail::set_poison(bool on) {
    const int before = on ? poisoning.fetch_or(1) : poisoning.fetch_and(~1);
    check_next_changes();
    return before & 1;
}

void detail::hold_poison(bool begins) {
    poisoning.fetch_add(begins ? 2 : -2);
    check_next_changes();
}

}  // namespace tally::memory
