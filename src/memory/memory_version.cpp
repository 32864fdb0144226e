// Version counters and checksums detect modifications of saved buffers.
#include <atomic>

#include "tally/base/checksum.hpp"
#include "tally/memory/device_allocator.hpp"
#include "tally/memory/memory.hpp"
#include "tally/memory/memory_thread_cache.hpp"

namespace tally::memory {

namespace {

// Computes the checksum of the whole buffer, because a backward function may save any view of the buffer.
std::uint64_t checksum_of(const detail::Storage* storage) {
    return tally::detail::checksum_of(storage->data, caching ? storage->bytes : storage->requested_bytes);
}

std::uint32_t this_thread() {  // the number of this thread, never 0
    static std::atomic<std::uint32_t> last{0};
    thread_local const std::uint32_t number = ++last;
    return number;
}

}  // namespace

void detail::record_checksum(detail::Storage* storage) {
    storage->has_checksum.store(false);
    storage->checksum_version = storage->version.load(std::memory_order_relaxed);
    storage->checksum = checksum_of(storage);
    storage->has_checksum.store(true, std::memory_order_release);
}

void detail::mark_replaced(detail::Storage* storage) {
    storage->replaced_by_thread.store(this_thread());
    raise_version(storage);
}

bool detail::replaced_by_another_thread(const detail::Storage* storage, std::uint32_t version) {
    const std::uint32_t thread = storage->replaced_by_thread.load();
    return thread != 0 && thread != this_thread() && storage->version.load() == version + 1;
}

bool detail::changed_since_saved(const detail::Storage* storage) {
    return storage->has_checksum.load(std::memory_order_acquire) &&
           storage->checksum_version == storage->version.load(std::memory_order_relaxed) &&
           storage->checksum != checksum_of(storage);
}

}  // namespace tally::memory
