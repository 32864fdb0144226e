// Draws shares of rows, lanes of work, and points and curves on axes.
#include "course/kit/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "tally/base/text.hpp"

namespace tally::lesson {

namespace {
constexpr int left_edge = Sheet::margin + 16, line_height = 30;

std::string words_of(const Vector& numbers) { return detail::short_values(numbers); }

// Returns the factor between two gradients, if all components have the same factor.
std::string compared(const Vector& sum, const Vector& full) {
    double factor = 0, largest = 0;
    for (std::size_t i = 0; i < sum.size(); ++i)
        if (std::abs(full[i]) > largest) largest = std::abs(full[i]), factor = sum[i] / full[i];
    for (std::size_t i = 0; i < sum.size(); ++i)
        if (std::abs(sum[i] - factor * full[i]) > 0.001 * largest) return "not the full batch's";
    return fmt::format("{:.2f} times the full batch's", factor);
}

struct Batch {
    std::string name, weight;
    std::span<const Vector> rows;
    const Vector& gradient;  // of the mean
};

// Returns the full batch, and then its parts with the weights of their rows.
std::vector<Batch> batches_of(const Shares& shares) {
    const std::size_t n = shares.parts.size(), all = shares.rows.size();
    std::vector<Batch> batches{{fmt::format("the full batch: one mean of {}", all), fmt::format("1/{}", all),
                                shares.rows, shares.full}};
    std::size_t first = 0;
    for (const auto& [name, rows, gradient] : shares.parts) {
        std::string weight = rows == 1 ? "1" : fmt::format("1/{}", rows);
        if (!shares.weighed.empty())
            weight += fmt::format(" x {}/{} = 1/{}", rows, all, all);
        else if (!shares.divided.empty())
            weight += fmt::format(" / {} = 1/{}", n, rows * n);
        batches.push_back({fmt::format("micro-batch {}, {}: a mean of {}", batches.size(), name, rows),
                           weight, std::span(shares.rows).subspan(first, rows), gradient});
        first += rows;
    }
    return batches;
}
}  // namespace

Sheet sheet_of(const std::string& title, const Shares& shares) {
    const std::vector<Batch> batches = batches_of(shares);
    Sheet sheet(title);
    int weights_wide = 0, numbers_wide = drawing::width_of_words("gradient of its mean");
    for (const auto& batch : batches) {
        weights_wide = std::max(weights_wide, drawing::width_of_words(batch.weight, "t-strong"));
        for (const Vector& numbers : batch.rows)
            numbers_wide = std::max(numbers_wide, drawing::width_of_words(words_of(numbers)));
    }
    const int weight_at = left_edge + drawing::width_of_words("row 10  ") + numbers_wide + 36;
    const int gradient_at = weight_at + weights_wide + 84;
    int y = sheet.top();
    std::size_t first = 0;
    sheet.text(weight_at, y, "counts", "t-quiet");
    sheet.text(gradient_at, y, "gradient of its mean", "t-quiet");
    y += 14;
    for (const Batch& batch : batches) {
        const int height = line_height * static_cast<int>(batch.rows.size());
        sheet.box(Sheet::margin, y, gradient_at + numbers_wide + 16 - Sheet::margin, height + 52);
        sheet.text(left_edge, y + 28, batch.name, "t-quiet");
        sheet.arrow(gradient_at - 60, y + 40 + height / 2, gradient_at - 12, y + 40 + height / 2);
        sheet.text(gradient_at, y + 46 + height / 2, words_of(batch.gradient), "t-bad");
        y += 62;
        for (const Vector& row : batch.rows) {
            sheet.text(left_edge, y, fmt::format("row {}  {}", first++, words_of(row)));
            sheet.text(weight_at, y, batch.weight, "t-strong");
            y += line_height;
        }
        if (&batch == &batches.front()) first = 0, y += 22;
        y += 2;
    }
    const auto result = [&](const std::string& name, const Vector& sum) {
        if (sum.empty()) return;
        sheet.text(gradient_at - 16, y += 34, name, "t-end");
        sheet.text(gradient_at, y, words_of(sum), "t-bad");
        sheet.text(gradient_at - 16, y += line_height, compared(sum, shares.full), "t-strong t-end");
    };
    result("added up, nothing divided:", shares.sum);
    result(fmt::format("each divided by {}, then added up:", shares.parts.size()), shares.divided);
    result("each by its share of the rows, then added up:", shares.weighed);
    return sheet;
}

Sheet sheet_of(const std::string& title, const Lanes& all) {
    constexpr int high = 36, gap = 12;
    constexpr std::size_t most_labels = 72;  // if there are more labels, they do not fit and none is drawn
    const char* const styles[] = {"s-own", "s-kept", "s-two"};
    double ends = 0;
    int names = 0, last = 0;
    std::size_t labels = 0;
    std::string told;
    for (const auto& lane : all.lanes) {
        names = std::max(names, drawing::width_of_words(lane.name));
        last = std::max(last, drawing::width_of_words(lane.end));
        told += fmt::format("{}: {} pieces of work {}. ", lane.name, lane.work.size(), lane.end);
        for (const auto& work : lane.work) ends = std::max(ends, work.until), labels += !work.label.empty();
    }
    Sheet sheet(title, told);
    const int x0 = left_edge + names + 16;
    const double unit = std::min(40.0, (Sheet::widest - Sheet::margin - x0 - 16 - last) / ends);
    const auto x = [&](double time) { return x0 + static_cast<int>(std::lround(time * unit)); };
    int y = sheet.top() + 10;
    for (const auto& lane : all.lanes) {
        sheet.text(left_edge, y + 25, lane.name);
        for (std::size_t kind = 0; kind < all.kinds.size(); ++kind) {
            std::string boxes;
            for (const auto& work : lane.work)
                if (work.kind == kind)
                    boxes += fmt::format("M{},{}H{}V{}H{}Z", x(work.from), y, x(work.until), y + high,
                                         x(work.from));
            if (!boxes.empty()) sheet.path(boxes, styles[kind], {x0, y, x(ends), y + high, {}});
        }
        for (const auto& work : lane.work)
            if (!work.label.empty() && labels <= most_labels)
                sheet.text((x(work.from) + x(work.until)) / 2, y + 25, work.label, "t-middle");
        sheet.text(x(ends) + 16, y + 25, lane.end);
        y += high + gap;
    }
    int at = x0;
    for (std::size_t kind = 0; kind < all.kinds.size(); ++kind) {
        sheet.box(at, y + 12, 30, 22, styles[kind], 0);
        at = sheet.text(at + 42, y + 30, all.kinds[kind]) + 40;
    }
    return sheet;
}

namespace {
using Scale = Plane::Scale;

int rounded(double x) { return static_cast<int>(std::lround(x)); }

struct Interval {
    double low = std::numeric_limits<double>::infinity(), high = -low;

    void include(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    void widen() {  // so that the range is not empty and no point lies on the frame
        if (low > high) low = high = 0;
        const double more = high > low ? 0.04 * (high - low) : std::max(1.0, std::abs(low)) / 2;
        low -= more, high += more;
    }
    double length() const { return high - low; }
};

// Returns the smallest step (1, 2 or 5 times a power of ten) of which at most eight fit into `length`.
double tick_of(double length) {
    double step = std::pow(10, std::floor(std::log10(length / 8)));
    while (length / step > 8)
        for (const double factor : {2.0, 2.5, 2.0})
            if (length / step > 8) step *= factor;
    return step;
}

std::string tick_words(double tick, double step, bool power) {
    if (power && std::abs(tick) >= 4) return fmt::format("1e{:g}", tick);
    return fmt::format("{:.4g}", power ? std::pow(10, tick) : std::abs(tick) < step / 2 ? 0.0 : tick);
}

// Maps numbers to pixels.
struct Paper {
    Paper(Sheet& page, const Plane& shown) : sheet(page), plane(shown) {
        const auto include = [&](double at_x, double at_y, double around) {
            if (!shows(at_x, at_y)) return;
            x.include(at_x - around), x.include(at_x + around);
            y.include(height(at_y) - around), y.include(height(at_y) + around);
        };
        if (!plane.middle_label.empty()) include(plane.middle_x, plane.middle_y, 0);
        for (const auto& [label, radius] : plane.circles) include(plane.middle_x, plane.middle_y, radius);
        for (const auto& series : plane.series)
            for (std::size_t i = 0; i < series.x.size(); ++i) include(series.x[i], series.y[i], 0);
        x.widen(), y.widen();
        per_x = 700 / x.length(), per_y = 460 / y.length();
        if (plane.scale == Scale::equal) per_x = per_y = std::min(800 / x.length(), 620 / y.length());
        right = left + rounded(x.length() * per_x), bottom = top + rounded(y.length() * per_y);
    }
    Sheet& sheet;
    const Plane& plane;
    Interval x, y;
    double per_x = 1, per_y = 1;  // pixels of a unit
    int left = Sheet::margin + 92, top = sheet.top() + 24, right = 0, bottom = 0;

    int across(double at) const { return left + rounded((at - x.low) * per_x); }
    int up(double at) const { return bottom - rounded((height(at) - y.low) * per_y); }
    bool shows(double at_x, double at_y) const { return std::isfinite(at_x) && std::isfinite(height(at_y)); }

    void draw_axes() const {
        const bool powers = plane.scale == Scale::logarithmic;
        double step_x = std::max(1.0, tick_of(x.length())), step_y = tick_of(y.length());
        if (plane.scale == Scale::equal) step_x = step_y = tick_of(std::max(x.length(), y.length()));
        if (powers) step_y = std::max(1.0, step_y);
        for (double tick = std::ceil(x.low / step_x) * step_x; tick <= x.high; tick += step_x) {
            sheet.rule(across(tick), top, across(tick), bottom, "t-rule");
            sheet.text(across(tick), bottom + 32, tick_words(tick, step_x, false), "t-middle");
        }
        for (double tick = std::ceil(y.low / step_y) * step_y; tick <= y.high; tick += step_y) {
            const int at = bottom - rounded((tick - y.low) * per_y);
            sheet.rule(left, at, right, at, "t-rule");
            sheet.text(left - 12, at + 6, tick_words(tick, step_y, powers), "t-end");
        }
        sheet.rule(left, top, left, bottom, "t-axis"), sheet.rule(left, bottom, right, bottom, "t-axis");
        sheet.text(Sheet::margin + 16, top - 22, plane.up, "t-quiet");
        sheet.text(left, bottom + 62, plane.across, "t-quiet");
    }

    double height(double at) const {
        return plane.scale != Scale::logarithmic ? at : at > 0 ? std::log10(at) : std::nan("");
    }
};
}  // namespace

Plane curves(const std::string& across, const std::string& up,
             const std::vector<std::pair<std::string, Vector>>& all, Scale scale) {
    Plane plane{across, up, {}, scale};
    for (const auto& [label, heights] : all) {
        plane.series.push_back({label, Vector(heights.size()), heights});
        std::iota(plane.series.back().x.begin(), plane.series.back().x.end(), 0.0);
    }
    return plane;
}

Sheet sheet_of(const std::string& title, const Plane& plane) {
    Sheet sheet(title);
    const Paper paper(sheet, plane);
    paper.draw_axes();
    int at = paper.top - 24;
    const auto legend = [&](const char* commands, const char* style, const std::string& label) {
        at += 44;
        sheet.path(fmt::format("M{},{}{}", paper.right + 50, at, commands), style, {});
        sheet.text(paper.right + 86, at + 6, label);
    };
    const char *const cross = "m-15,0h30m-15,-15v30", *const dash = "m-22,0h44";
    const int middle_x = paper.across(plane.middle_x), middle_y = paper.up(plane.middle_y);
    if (!plane.middle_label.empty()) legend(cross, "s-truth", plane.middle_label);
    const bool joined = plane.scale != Scale::equal;
    const std::array marks{"m-5,-5l10,10m0,-10l-10,10", "m-3,-3h6v6h-6z"}, points{"s-one", "s-two"};
    const std::array lines{"s-line", "s-bad", "s-dashed", "s-dotted"};
    for (std::size_t s = 0; s < plane.series.size(); ++s) {
        const auto& [label, x, y] = plane.series[s];
        std::string path;
        for (std::size_t i = 0; i < x.size(); ++i)
            if (paper.shows(x[i], y[i]))
                path += fmt::format("{}{},{}{}", joined && !path.empty() ? "L" : "M", paper.across(x[i]),
                                    paper.up(y[i]), joined ? "" : marks.at(s));
        const char* const style = joined ? lines.at(s) : points.at(s);
        if (!path.empty()) sheet.path(path, style, {});
        const std::string ends =
            joined && !y.empty() ? fmt::format(": {:.4g} to {:.4g}", y.front(), y.back()) : "";
        legend(joined ? dash : marks.at(s), style, label + ends);
    }
    for (std::size_t i = 0; i < plane.circles.size(); ++i) {
        const char* const style = i % 2 == 0 ? "s-dashed" : "s-line";
        sheet.circle(middle_x, middle_y, rounded(plane.circles[i].second * paper.per_x), style);
        legend(dash, style, plane.circles[i].first);
    }
    if (!plane.middle_label.empty())
        sheet.path(fmt::format("M{},{}{}", middle_x, middle_y, cross), "s-truth", {});
    return sheet;
}

}  // namespace tally::lesson
