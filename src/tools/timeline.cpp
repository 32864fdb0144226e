// A `Timeline` records the memory in use after each event, and prints a chart of text characters.
#include "tally/tools/timeline.hpp"

#include <algorithm>

#include "tally/base/text.hpp"
#include "tally/base/write_file.hpp"
#include "tally/memory/memory_thread_stats.hpp"
#include "tally/tools/scope_name.hpp"

namespace tally {

namespace {
const auto lower = [](const Timeline::Sample& a, const Timeline::Sample& b) { return a.in_use < b.in_use; };
}

Timeline::Timeline(Device device) : device_(device), highest_before_(memory::peak(device)) {}

void Timeline::on_forward(const ForwardEvent& operation) { look(operation.op, true); }
void Timeline::after_backward(const Node& node) { look(node.op(), false); }

void Timeline::look(const char* op, bool forward) {
    const memory::detail::Sums now = memory::detail::sums(device_);
    Sample sample{++events_, forward, static_cast<std::size_t>(now[memory::detail::all_classes]), {}};
    std::copy_n(now.begin(), memory::detail::memory_classes, sample.in_use_by.begin());
    const std::size_t highest_ever = memory::peak(device_);
    const bool higher_than_ever = highest_ever > std::exchange(highest_before_, highest_ever);
    const std::size_t bytes = higher_than_ever ? highest_ever : sample.in_use;
    if (bytes > peak_.bytes) peak_ = {bytes, sample, op, ScopeName::place(), bytes > sample.in_use};
    if ((events_ - 1) % each_stands_for_ != 0) {
        if (lower(samples_.back(), sample)) samples_.back() = sample;
        return;
    }
    if (samples_.size() == most_samples) {
        samples_ = detail::highest(samples_, most_samples / 2);
        each_stands_for_ *= 2;
    }
    samples_.push_back(sample);
}

std::vector<Timeline::Sample> detail::highest(const std::vector<Timeline::Sample>& samples,
                                              std::size_t count) {
    if (samples.size() <= count) return samples;
    std::vector<Timeline::Sample> chosen;
    for (std::size_t i = 0; i < count; ++i) {
        const auto at = [&](std::size_t part) {
            return samples.begin() + static_cast<std::ptrdiff_t>(samples.size() * part / count);
        };
        chosen.push_back(*std::max_element(at(i), at(i + 1), lower));
    }
    return chosen;
}

std::string detail::to_text(const Timeline::Peak& peak) {
    return detail::format_bytes(peak.bytes) + (peak.within ? " within event " : " at event ") +
           std::to_string(peak.at.event) + ", " + (peak.at.forward ? "computing '" : "backward of '") +
           detail::clean_text(peak.op, 40) + "'" +
           (peak.where.empty() ? "" : " in " + detail::clean_text(peak.where, 60));
}

std::string Timeline::strip(const detail::StripOptions& options) const {
    const auto [columns, ascii] = options;
    if (columns < 1) throw Error("timeline", "cannot draw ", columns, " columns; pass at least 1");
    require_samples();
    constexpr int rows = 6;
    static constexpr const char* blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static constexpr const char* letters[] = {" ", ".", ".", ".", ":", ":", ":", "#", "#"};
    const std::vector<Sample> shown = detail::highest(samples_, static_cast<std::size_t>(columns));
    const std::size_t stretch = static_cast<std::size_t>(columns) / shown.size();
    const auto repeated = [stretch](const char* letter) {
        std::string text;
        for (std::size_t i = 0; i < stretch; ++i) text += letter;
        return text;
    };
    const std::string top = detail::format_bytes(peak_.bytes);
    std::string text;
    for (int row = rows; row-- > 0;) {
        std::string label = row == rows - 1 ? top : row == 0 ? "0 B" : "";
        std::string line =
            std::string(top.size() - std::min(label.size(), top.size()), ' ') + label + (ascii ? " |" : " │");
        for (const Sample& sample : shown) {
            // Rounds up to eighths of a row, so that any value above 0 is visible.
            const auto eighths =
                static_cast<int>((static_cast<double>(sample.in_use) * rows * 8) /
                                     static_cast<double>(std::max<std::size_t>(peak_.bytes, 1)) +
                                 0.999);
            const auto filled = static_cast<std::size_t>(std::clamp(eighths - row * 8, 0, 8));
            line += repeated(ascii ? letters[filled] : blocks[filled]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    const bool all = shown.size() == events_;
    text += std::string(top.size(), ' ') + (ascii ? " +" : " └");
    for (const Sample& sample : shown)
        text += repeated(!all ? (ascii ? "-" : "─") : sample.forward ? ">" : "<");
    text +=
        "\n" + std::to_string(events_) + (all ? " events: > computed, < gone back through\n" : " events\n");
    return text + "peak " + detail::to_text(peak_) + "\n";
}

void Timeline::write(const std::string& path, const std::string& title) const {
    if (!path.ends_with(".svg"))
        throw Error("timeline", "cannot write '", path, "'; use a name that ends in .svg");
    write_file_atomically(path, svg(title));
}

void Timeline::require_samples() const {
    detail::require(!samples_.empty(), "timeline",
                    "no operation was recorded during its lifetime; construct it before the operations");
}

}  // namespace tally
