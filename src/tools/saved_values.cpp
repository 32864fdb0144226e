// The class SavedValues stores a list of saved values, and prints the list as a table.
#include "tally/tools/saved_values.hpp"

#include <algorithm>
#include <set>

#include "tally/base/text.hpp"
#include "tally/base/text_table.hpp"
#include "tally/tools/scope_name.hpp"

namespace tally {
namespace {

SavedValues::Why why(const detail::ForwardEvent& operation, const detail::ValueInfo& kept) {
    if (!kept.storage) return SavedValues::Why::number;
    if (memory::detail::memory_class(kept.storage) == MemoryClass::parameter)
        return SavedValues::Why::parameter;
    if (memory::detail::memory_class(kept.storage) == MemoryClass::gradient)
        return SavedValues::Why::gradient;
    return kept.storage == operation.value.storage ? SavedValues::Why::output : SavedValues::Why::operand;
}

const char* to_text(SavedValues::Why why) {
    constexpr const char* words[] = {"its own output", "an operand, or computed inside",
                                     "a parameter, which is there anyway",
                                     "a gradient, which is there anyway", "a number, in the graph's node"};
    return words[static_cast<int>(why)];
}

}  // namespace

void SavedValues::on_forward(const ForwardEvent& operation) {
    if (operation.saved.empty()) return;
    const std::string where = ScopeName::place();
    for (const detail::ValueInfo& kept : operation.saved) {
        bool counts = kept.storage && memory::detail::memory_class(kept.storage) == MemoryClass::saved;
        if (kept.storage) {
            const auto of_an_older_node = [&](const Entry& entry) {
                return entry.storage == kept.storage && entry.node != operation.node->id;
            };
            if (detail::other_save_count(operation, kept) == 0)  // entries of older nodes were dropped
                std::erase_if(entries_, of_an_older_node);
            else if (const auto present = std::ranges::find_if(entries_, of_an_older_node);
                     counts && (present == entries_.end() || !present->counts))
                counts = false;
        }
        entries_.push_back({operation.op, where, kept.shape, kept.bytes, why(operation, kept), counts,
                            kept.storage, operation.node->id});
    }
}

void SavedValues::after_backward(const Node& node) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.node == node.id; });
}

std::size_t SavedValues::bytes() const {
    std::set<const memory::detail::Storage*> counted;
    std::size_t sum = 0;
    for (const Entry& entry : entries_)
        if (entry.counts && counted.insert(entry.storage).second) sum += entry.bytes;
    return sum;
}

std::size_t SavedValues::buffers() const {
    std::set<const memory::detail::Storage*> counted;
    for (const Entry& entry : entries_)
        if (entry.counts) counted.insert(entry.storage);
    return counted.size();
}

std::string to_string(const SavedValues& kept) {
    using enum TextTable::Side;
    TextTable table({{"", right},
                     {"operation", left},
                     {"keeps", left},
                     {"bytes", right},
                     {"why", left},
                     {"where", left}});
    const std::vector<SavedValues::Entry>& entries = kept.entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const SavedValues::Entry& entry = entries[i];
        const auto same_buffer = std::ranges::find(entries, entry.storage, &SavedValues::Entry::storage);
        const auto listed = static_cast<std::size_t>(same_buffer - entries.begin());
        std::string bytes = "-", reason = to_text(entry.why);
        if (entry.counts && listed == i) bytes = detail::format_bytes(entry.bytes);
        if (entry.counts && listed < i)
            reason = "same buffer as line " + std::to_string(listed + 1) + ", not added";
        else if (!entry.counts && entry.why <= SavedValues::Why::operand)
            reason += "; saved before this list began";
        table.add({std::to_string(i + 1), entry.op, to_string(entry.shape), bytes, reason, entry.where});
    }
    return table.text() + "saved for backward: " + detail::format_bytes(kept.bytes()) + " in " +
           std::to_string(kept.buffers()) + (kept.buffers() == 1 ? " buffer\n" : " buffers\n");
}

}  // namespace tally
