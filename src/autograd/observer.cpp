// Telling who looks on, and how the ledger's rows moved when an operation was computed.
#include "tally/autograd/observer.hpp"

#include <algorithm>

namespace tally::detail {

void tell_unrecorded(const char* op, const ObservedValue& value) {
    watching::detail::observer->computed({op, nullptr, value, {}});
}

std::size_t savers_before(const Computed& operation, const ObservedValue& kept) {
    const auto of_its_own = std::ranges::count(operation.kept, kept.storage, &ObservedValue::storage);
    return memory::detail::rules(kept.storage) - static_cast<std::size_t>(of_its_own);
}

std::size_t newly_kept(const Computed& operation) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < operation.kept.size(); ++i) {
        const ObservedValue& kept = operation.kept[i];
        if (!kept.storage || memory::detail::held_as(kept.storage) != MemoryClass::saved) continue;
        const bool first = std::ranges::find(operation.kept, kept.storage, &ObservedValue::storage) ==
                           operation.kept.begin() + static_cast<std::ptrdiff_t>(i);
        if (first && savers_before(operation, kept) == 0) bytes += kept.bytes;
    }
    return bytes;
}

std::size_t made(const Computed& operation) {
    const memory::detail::Storage* const storage = operation.value.storage;
    if (!storage) return 0;
    const auto kept =
        static_cast<std::size_t>(std::ranges::count(operation.kept, storage, &ObservedValue::storage));
    return memory::detail::holders(storage) == 1 + kept ? operation.value.bytes : 0;
}

}  // namespace tally::detail
