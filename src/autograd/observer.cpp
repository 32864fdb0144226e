// Notifies observers and computes how many bytes an operation allocated and saved.
#include "tally/autograd/observer.hpp"

#include <algorithm>

namespace tally::detail {

void notify_without_node(const char* op, const ValueInfo& value) {
    instrumentation::detail::observer->on_forward({op, nullptr, value, {}});
}

std::size_t other_save_count(const ForwardEvent& operation, const ValueInfo& value) {
    const auto own_saves = std::ranges::count(operation.saved, value.storage, &ValueInfo::storage);
    return memory::detail::saved_count(value.storage) - static_cast<std::size_t>(own_saves);
}

std::size_t newly_saved_bytes(const ForwardEvent& operation) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < operation.saved.size(); ++i) {
        const ValueInfo& value = operation.saved[i];
        if (!value.storage || memory::detail::memory_class(value.storage) != MemoryClass::saved) continue;
        const bool first = std::ranges::find(operation.saved, value.storage, &ValueInfo::storage) ==
                           operation.saved.begin() + static_cast<std::ptrdiff_t>(i);
        if (first && other_save_count(operation, value) == 0) bytes += value.bytes;
    }
    return bytes;
}

std::size_t output_bytes(const ForwardEvent& operation) {
    const memory::detail::Storage* const storage = operation.value.storage;
    if (!storage) return 0;
    const auto own_saves =
        static_cast<std::size_t>(std::ranges::count(operation.saved, storage, &ValueInfo::storage));
    return memory::detail::ref_count(storage) == 1 + own_saves ? operation.value.bytes : 0;
}

}  // namespace tally::detail
