// The ledger's report, for people.
#include <cstdio>

#include "tally/base/text.hpp"
#include "tally/memory/memory.hpp"

namespace tally::memory {

std::string to_string(const Report& report) {
    constexpr const char* names[] = {"parameters", "gradients", "saved", "temporary"};
    std::string text = "                in use        peak\n";
    const auto line = [&text](const char* name, std::size_t now, std::size_t most) {
        char row[64];
        std::snprintf(row, sizeof row, "%-10s %11s %11s\n", name, bytes_in_words(now).c_str(),
                      bytes_in_words(most).c_str());
        text += row;
    };
    for (int row = 0; row < memory_classes; ++row)
        line(names[row], report.in_use_by[row], report.peak_by[row]);
    line("together", report.in_use, report.peak);
    text += "cached " + bytes_in_words(report.cached) + ", ";
    text += report.budget == 0 ? "no budget"
                               : "budget " + bytes_in_words(report.budget) + " (largest free block " +
                                     bytes_in_words(report.largest_free) + ")";
    return text + "; " + std::to_string(report.allocations) + " allocations, " +
           std::to_string(report.reused) + " of them reused\n";
}

}  // namespace tally::memory
