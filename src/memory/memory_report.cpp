// Formats the memory report and the error message of `OutOfMemory`.
#include <cstdio>
#include <string>

#include "tally/base/text.hpp"
#include "tally/memory/memory.hpp"
#include "tally/memory/memory_thread_cache.hpp"

namespace tally::memory {

using tally::detail::format_bytes;

std::string to_string(const Report& report) {
    constexpr const char* names[] = {"parameters", "gradients", "saved", "temporary"};
    std::string text = "                in use        peak\n";
    const auto row = [&text](const char* name, std::size_t now, std::size_t peak) {
        char cells[64];
        std::snprintf(cells, sizeof cells, "%-10s %11s %11s\n", name, format_bytes(now).c_str(),
                      format_bytes(peak).c_str());
        text += cells;
    };
    for (int i = 0; i < detail::memory_classes; ++i) row(names[i], report.in_use_by[i], report.peak_by[i]);
    row("together", report.in_use, report.peak);
    text += "cached " + format_bytes(report.cached) + ", ";
    text += report.budget == 0 ? "no budget"
                               : "budget " + format_bytes(report.budget) + " (largest free block " +
                                     format_bytes(report.largest_free) + ")";
    return text + "; " + std::to_string(report.allocations) + " allocations, " +
           std::to_string(report.reused) + " of them reused" +
           (report.packing == 0 ? "" : "; packing buffers " + format_bytes(report.packing)) + "\n";
}

void detail::out_of_memory(std::size_t asked, Device device, std::size_t cached, std::size_t free,
                           std::size_t largest) {
    const std::size_t budget = memory::detail::budget(device);
    std::string text = std::string("[memory] out of memory on ") + tally::to_string(device) + ": asked " +
                       format_bytes(asked) + " (" + std::to_string(asked) + " bytes), " +
                       (budget != 0 ? "budget " + format_bytes(budget) : "no budget") + ", in use " +
                       format_bytes(in_use(device)) + ", cached " + format_bytes(cached);
    if (budget != 0) text += ", largest free block " + format_bytes(largest);
    if (budget != 0 && free >= asked) text += "; " + format_bytes(free) + " are free, but fragmented";
    text += "; use smaller micro-batches" +
            std::string(budget != 0 ? ", checkpoint, or raise the budget" : " or checkpoint");
    throw OutOfMemory(text, device, asked, in_use(device));
}

}  // namespace tally::memory
