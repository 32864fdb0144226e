// Implements the training log: lines of CSV and JSON, the loss curve, and the line of progress.
#include "tally/train/training_log.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tally/base/text.hpp"
#include "tally/memory/memory.hpp"
#include "tally/tools/svg.hpp"
#include "tally/train/state_reader.hpp"

namespace tally {
namespace {

using svg::formatted, svg::rule, svg::text;

std::string json_number(double number) { return std::isfinite(number) ? detail::to_text(number) : "null"; }

std::string clock(double seconds) {
    if (!(seconds < 360000)) return "?";
    const auto whole = static_cast<long>(std::llround(std::max(seconds, 0.0)));
    return whole < 3600 ? formatted("%ld:%02ld", whole / 60, whole % 60)
                        : formatted("%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace

std::string detail::csv_head() { return "update,epoch,loss,count,norm,learning_rate,samples_per_second\n"; }

std::string detail::csv_line(const detail::TrainingRecord& r) {
    return std::to_string(r.update) + "," + detail::to_text(r.epoch) + "," + detail::to_text(r.loss()) + "," +
           detail::to_text(r.count) + "," + (r.norm ? detail::to_text(*r.norm) : "") + "," +
           detail::to_text(r.learning_rate) + "," + detail::to_text(r.samples_per_second) + "\n";
}

std::string detail::json_line(const detail::TrainingRecord& r) {
    return "{\"update\": " + std::to_string(r.update) + ", \"epoch\": " + json_number(r.epoch) +
           ", \"loss\": " + json_number(r.loss()) + ", \"count\": " + json_number(r.count) +
           ", \"norm\": " + (r.norm ? json_number(*r.norm) : "null") +
           ", \"learning_rate\": " + json_number(r.learning_rate) +
           ", \"samples_per_second\": " + json_number(r.samples_per_second) + "}\n";
}

std::string detail::progress_line(const detail::Progress& p) {  // at most 80 characters
    constexpr std::size_t width = 10;
    const auto full = static_cast<std::size_t>(std::clamp(p.done, 0.0, 1.0) * width);
    const double speed = p.samples_per_second;
    return formatted("epoch %ld/%ld [%s%s] update %ld, loss ", static_cast<long>(p.epoch),
                     static_cast<long>(p.epochs), std::string(full, '#').c_str(),
                     std::string(width - full, '.').c_str(), static_cast<long>(p.last.update)) +
           detail::to_text(p.last.loss(), 4) + " = " + detail::to_text(p.last.sum, 4) + "/" +
           detail::to_text(p.last.count, 6) + ", " +
           (speed < 100 ? detail::to_text(speed, 3) : detail::with_decimals(speed, 0)) + "/s, " +
           clock(p.seconds_left) + " left";
}

std::string to_string(const detail::TrainingTotals& s) {
    std::string text = "epochs " + std::to_string(s.epochs) + ", updates " + std::to_string(s.updates) +
                       "; " + std::to_string(s.samples) + " samples in " + detail::to_text(s.seconds, 4) +
                       " s: " + detail::to_text(s.samples_per_second(), 4) + " samples/s\n";
    if (s.dropped_micro_batches > 0)
        text += std::to_string(s.dropped_micro_batches) + " micro-batches were dropped\n";
    if (s.retries > 0)
        text += "memory ran out " + std::to_string(s.retries) + " times, down to " +
                std::to_string(s.micro_batch_size) + " items a micro-batch\n";
    return text + "memory: " + detail::format_bytes(s.peak) + " at most, " +
           detail::format_bytes(s.peak_without_model) +
           " of it beyond parameters and gradients; saved for backward " + detail::format_bytes(s.saved) +
           " at most\n";
}

// ---- the picture ----

namespace {

constexpr int width = 960, height = 540, left = 112, right = 928, top = 76, bottom = 452;

struct Axis {
    double from, to;
    int at_from, at_to;  // pixels
    int place(double value) const {
        return at_from + static_cast<int>(std::lround((value - from) / (to - from) * (at_to - at_from)));
    }
};

// Returns three to nine round numbers within the axis, with steps of at least `least`.
std::vector<double> ticks(const Axis& axis, double least) {
    const double rough = (axis.to - axis.from) / 8;
    double step = std::pow(10, std::floor(std::log10(rough)));
    for (const double more : {2.0, 2.5, 2.0})
        if (step < rough) step *= more;
    step = std::max(step, least);
    std::vector<double> all;
    for (double i = std::ceil(axis.from / step); i * step <= axis.to; ++i) all.push_back(i * step);
    return all;
}

constexpr const char* styles =
    ".t-curve{fill:none;stroke:#0b57d0;stroke-width:2;stroke-linejoin:round}\n"
    ".t-mark{fill:#0b57d0}\n";

// Returns one point for each column of pixels, at the mean of the losses in this column.
std::string points(const std::vector<detail::TrainingRecord>& records, const Axis& x, const Axis& y,
                   int& count) {
    std::string all;
    for (std::size_t i = 0; i < records.size();) {
        const int column = x.place(static_cast<double>(records[i].update));
        double sum = 0, in_column = 0;
        for (; i < records.size() && x.place(static_cast<double>(records[i].update)) == column; ++i) {
            sum += records[i].loss();
            ++in_column;
        }
        all += (all.empty() ? "" : " ") + formatted("%d,%d", column, y.place(sum / in_column));
        ++count;
    }
    return all;
}

}  // namespace

std::string detail::loss_curve_svg(std::span<const detail::TrainingRecord> records,
                                   const std::string& title) {
    std::vector<detail::TrainingRecord> finite;
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const detail::TrainingRecord& record : records) {
        if (!std::isfinite(record.loss())) continue;
        finite.push_back(record);
        low = std::min(low, record.loss());
        high = std::max(high, record.loss());
    }
    if (finite.empty()) throw Error("[loss_curve] no record has a finite loss to draw");
    const auto first = static_cast<double>(finite.front().update),
               last = static_cast<double>(finite.back().update);
    const double around = high > low ? (high - low) * 0.05 : std::max(std::abs(high) * 0.05, 1e-3);
    const Axis x{first, std::max(last, first + 1), left, right}, y{low - around, high + around, bottom, top};

    const std::string shown = detail::clean_text(title, 200);
    const std::string told =
        "Loss by update: from " + detail::to_text(finite.front().loss(), 4) + " at update " +
        std::to_string(finite.front().update) + " to " + detail::to_text(finite.back().loss(), 4) +
        " at update " + std::to_string(finite.back().update) + ", " + detail::to_text(low, 4) + " at least.";
    std::string svg = svg::page(width, height, shown, told, styles) + text(left, 44, "t-title", shown);
    for (const double tick : ticks(y, 0)) {
        svg += rule(left, y.place(tick), right, y.place(tick), "t-rule");
        svg += text(left - 12, y.place(tick) + 6, "t-end",
                    detail::to_text(std::abs(tick) < around * 1e-6 ? 0 : tick, 4));
    }
    for (const double tick : ticks(x, 1)) {
        svg += rule(x.place(tick), bottom, x.place(tick), bottom + 8, "t-axis");
        svg += text(x.place(tick), bottom + 32, "t-middle", detail::to_text(tick, 6));
    }
    svg += rule(left, bottom, right, bottom, "t-axis") + rule(left, top, left, bottom, "t-axis");
    svg += text((left + right) / 2, bottom + 64, "t-middle", "update");
    int count = 0;
    const std::string curve = points(finite, x, y, count);
    svg += "<polyline points=\"" + curve + "\" class=\"t-curve\"/>\n";
    if (count == 1)  // because a line of one point is invisible
        svg += formatted("<circle cx=\"%d\" cy=\"%d\" r=\"4\" class=\"t-mark\"/>\n", x.place(first),
                         y.place(finite[0].loss()));
    return svg + "</svg>\n";
}

}  // namespace tally
