// Draws the pictures that have a scale: Plane, NumberLine, Curves and Walks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "course/kit/pictures.hpp"
#include "tally/base/text.hpp"

namespace tally::lesson {

namespace {
constexpr int page_left = Sheet::margin + 16;

int rounded(double x) { return static_cast<int>(std::lround(x)); }

struct Range {
    double low = std::numeric_limits<double>::infinity(), high = -low;

    void include(double value) {
        if (!std::isfinite(value)) return;
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

// Returns the smallest step (1, 2 or 5 times a power of ten) of which at most `most` fit into `length`.
double tick_of(double length, int most) {
    double step = std::pow(10, std::floor(std::log10(length / most)));
    while (length / step > most)
        for (const double factor : {2.0, 2.5, 2.0})
            if (length / step > most) step *= factor;
    return step;
}

std::string tick_words(double value, double step) {
    return fmt::format("{:.4g}", std::abs(value) < step / 2 ? 0.0 : value);
}

void scale_below(Sheet& sheet, const Range& range, double step, double unit, int x0, int y, int top) {
    for (double tick = std::ceil(range.low / step) * step; tick <= range.high; tick += step) {
        const int x = x0 + rounded((tick - range.low) * unit);
        sheet.rule(x, top, x, y, "t-rule");
        sheet.text(x, y + 32, tick_words(tick, step), "t-middle");
    }
}

// Maps the coordinates of a plane to pixels. Both axes have the same unit.
struct Paper {
    Range x, y;
    double unit;
    int left, top, right, bottom;

    int across(double value) const { return left + rounded((value - x.low) * unit); }
    int up(double value) const { return bottom - rounded((value - y.low) * unit); }
    void draw_axes(Sheet& sheet, const Plane& plane) const;
};

Paper paper_for(const Plane& plane, int top) {
    Range x, y;
    const auto include = [&](double at_x, double at_y, double around) {
        if (!std::isfinite(at_x) || !std::isfinite(at_y)) return;
        x.include(at_x - around), x.include(at_x + around);
        y.include(at_y - around), y.include(at_y + around);
    };
    include(plane.middle_x, plane.middle_y, 0);
    for (const auto& circle : plane.circles) include(plane.middle_x, plane.middle_y, circle.radius);
    for (const auto& points : plane.points)
        for (std::size_t i = 0; i < points.x.size(); ++i) include(points.x[i], points.y[i], 0);
    x.widen(), y.widen();
    const double unit = std::min(800 / x.length(), 620 / y.length());
    const int x0 = page_left + 76;
    return {x, y, unit, x0, top, x0 + rounded(x.length() * unit), top + rounded(y.length() * unit)};
}

void Paper::draw_axes(Sheet& sheet, const Plane& plane) const {
    const double step = tick_of(std::max(x.length(), y.length()), 8);
    scale_below(sheet, x, step, unit, left, bottom, top);
    for (double tick = std::ceil(y.low / step) * step; tick <= y.high; tick += step) {
        sheet.rule(left, up(tick), right, up(tick), "t-rule");
        sheet.text(left - 12, up(tick) + 6, tick_words(tick, step), "t-end");
    }
    sheet.rule(left, top, left, bottom, "t-axis"), sheet.rule(left, bottom, right, bottom, "t-axis");
    sheet.text(page_left, top - 22, plane.up, "t-quiet");
    sheet.text(left, bottom + 62, plane.across, "t-quiet");
}

std::string mark(std::size_t kind, int x, int y) {
    return kind == 0 ? fmt::format("M{},{}l10,10m0,-10l-10,10", x - 5, y - 5)
                     : fmt::format("M{},{}h6v6h-6z", x - 3, y - 3);
}
}  // namespace

Sheet sheet_of(const std::string& title, const Plane& plane) {
    std::string told =
        fmt::format("{} at {:.4g}, {:.4g}", plane.middle_label, plane.middle_x, plane.middle_y);
    for (const auto& points : plane.points)
        told += fmt::format("; {} points {}", points.x.size(), points.label);
    Sheet sheet(title, told + ". Both axes have one scale.");
    const Paper paper = paper_for(plane, sheet.top() + 24);
    paper.draw_axes(sheet, plane);

    const std::array circle_styles{"s-dashed", "s-line"}, styles{"s-one", "s-two"};
    const int middle_x = paper.across(plane.middle_x), middle_y = paper.up(plane.middle_y);
    const auto cross = [&](int x, int y) { return fmt::format("M{},{}h30m-15,-15v30", x - 15, y); };
    const Sheet::Words all{paper.left, paper.top, paper.right, paper.bottom, ""};
    for (std::size_t kind = 0; kind < plane.points.size(); ++kind) {
        std::string marks;
        const auto& points = plane.points[kind];
        for (std::size_t i = 0; i < points.x.size(); ++i)
            if (std::isfinite(points.x[i]) && std::isfinite(points.y[i]))
                marks += mark(kind, paper.across(points.x[i]), paper.up(points.y[i]));
        if (!marks.empty()) sheet.path(marks, styles[kind % 2], all);
    }
    for (std::size_t i = 0; i < plane.circles.size(); ++i)
        sheet.circle(middle_x, middle_y, rounded(plane.circles[i].radius * paper.unit), circle_styles[i % 2]);
    sheet.path(cross(middle_x, middle_y), "s-truth", all);

    const int sign = paper.right + 50;
    int at = paper.top + 20;
    const auto legend = [&](const std::string& commands, const std::string& style, const std::string& label) {
        sheet.path(commands, style, {sign - 22, at - 15, sign + 22, at + 15, ""});
        sheet.text(sign + 36, at + 6, label);
        at += 44;
    };
    legend(cross(sign, at), "s-truth", plane.middle_label);
    for (std::size_t kind = 0; kind < plane.points.size(); ++kind)
        legend(mark(kind, sign, at), styles[kind % 2], plane.points[kind].label);
    for (std::size_t i = 0; i < plane.circles.size(); ++i)
        legend(fmt::format("M{},{}h44", sign - 22, at), circle_styles[i % 2], plane.circles[i].label);
    return sheet;
}

Sheet sheet_of(const std::string& title, const NumberLine& numbers) {
    std::string told = "A number line.";
    for (const auto& one : numbers.marks)
        told += fmt::format(" {}: at {:.4g} of the distance between neighbours.", one.label, one.at);
    Sheet sheet(title, told);
    auto by_place = [](const auto& a, const auto& b) { return a.at < b.at; };
    auto exist = numbers.exist, marks = numbers.marks;
    std::stable_sort(exist.begin(), exist.end(), by_place);
    std::stable_sort(marks.begin(), marks.end(), by_place);
    Range range;
    for (const auto& one : exist) range.include(one.at);
    for (const auto& one : marks) range.include(one.at);
    range.widen();
    int longest = 0;
    for (const auto* all : {&exist, &marks})
        for (const auto& one : *all) longest = std::max(longest, drawing::width_of_words(one.label));
    const int room = std::max(300, Sheet::widest - 2 * Sheet::margin - longest - 40), pitch = 40;
    const auto x = [&](double at) { return page_left + rounded((at - range.low) / range.length() * room); };
    const int y = sheet.top() + pitch * static_cast<int>(marks.size()) + 40;
    sheet.rule(page_left, y, page_left + room, y, "t-axis");
    // The leftmost label is at the top, so that no line crosses a label.
    for (std::size_t i = 0; i < marks.size(); ++i) {
        const int at = sheet.top() + pitch * static_cast<int>(i);
        sheet.rule(x(marks[i].at), at - 12, x(marks[i].at), y - 12, "s-bad");
        sheet.arrow(x(marks[i].at), y - 24, x(marks[i].at), y - 2, "s-bad");
        sheet.text(x(marks[i].at) + 12, at, marks[i].label, "t-bad");
    }
    for (std::size_t i = 0; i < exist.size(); ++i) {
        const int at = y + 34 + pitch * static_cast<int>(exist.size() - i);
        sheet.rule(x(exist[i].at), y - 10, x(exist[i].at), at + 4, "s-line");
        sheet.text(x(exist[i].at) + 12, at, exist[i].label);
    }
    return sheet;
}

Sheet sheet_of(const std::string& title, const Curves& all) {
    std::string told;
    Range y;
    std::size_t most = 1;
    for (const auto& curve : all.curves) {
        if (curve.heights.empty()) continue;
        for (const double height : curve.heights)
            if (height > 0) y.include(std::log10(height));
        most = std::max(most, curve.heights.size() - 1);
        told += fmt::format("{}{}: from {:.4g} to {:.4g}.", told.empty() ? "" : " ", curve.label,
                            curve.heights.front(), curve.heights.back());
    }
    y.widen();
    Sheet sheet(title, told);
    const int x0 = page_left + 96, wide = 700, top = sheet.top() + 24, high = 460, bottom = top + high;
    const auto across = [&](std::size_t i) {
        return x0 + wide * static_cast<int>(i) / static_cast<int>(most);
    };
    const auto up = [&](double height) {
        return bottom - rounded((std::log10(height) - y.low) / y.length() * high);
    };
    const double step = std::max(1.0, tick_of(y.length(), 8));
    for (double tick = std::ceil(y.low / step) * step; tick <= y.high; tick += step) {
        const int at = bottom - rounded((tick - y.low) / y.length() * high);
        sheet.rule(x0, at, x0 + wide, at, "t-rule");
        sheet.text(x0 - 12, at + 6,
                   std::abs(tick) < 4 ? fmt::format("{:g}", std::pow(10, tick)) : fmt::format("1e{:g}", tick),
                   "t-end");
    }
    Range steps;
    steps.include(0), steps.include(static_cast<double>(most));
    scale_below(sheet, steps, tick_of(steps.length(), 6), wide / static_cast<double>(most), x0, bottom,
                bottom - 6);
    sheet.rule(x0, top, x0, bottom, "t-axis"), sheet.rule(x0, bottom, x0 + wide, bottom, "t-axis");
    sheet.text(page_left, top - 22, all.up, "t-quiet");
    sheet.text(x0, bottom + 62, all.across, "t-quiet");

    const std::array styles{"s-line", "s-bad", "s-dashed", "s-dotted"};
    std::vector<std::pair<int, std::size_t>> ends;  // the y of each curve's last point, sorted from the top
    for (std::size_t c = 0; c < all.curves.size(); ++c) {
        std::string commands;
        int last = bottom;
        for (std::size_t i = 0; i < all.curves[c].heights.size(); ++i)
            if (const double height = all.curves[c].heights[i]; std::isfinite(height) && height > 0)
                commands +=
                    fmt::format("{}{},{}", commands.empty() ? "M" : "L", across(i), last = up(height));
        if (!commands.empty()) sheet.path(commands, styles[c % 4], {x0, top, x0 + wide, bottom, ""});
        ends.emplace_back(last, c);
    }
    std::sort(ends.begin(), ends.end());
    int free = top;
    for (const auto& [end, c] : ends) {
        const int at = std::max(end, free), from = x0 + wide + 6;
        sheet.path(fmt::format("M{},{}L{},{}h36", from, end, from + 30, at), styles[c % 4],
                   {from, at, from + 66, at, ""});
        sheet.text(from + 76, at + 6, all.curves[c].label);
        free = at + 30;
    }
    return sheet;
}

Sheet sheet_of(const std::string& title, const Walks& all) {
    std::string told;
    Range range;
    int words = 0;
    for (const auto& walk : all.walks) {
        told += fmt::format("{}{}: {}.", told.empty() ? "" : " ", walk.name, walk.end);
        words = std::max(
            {words, drawing::width_of_words(walk.name, "t-strong"), drawing::width_of_words(walk.end)});
        for (const auto& step : walk.steps) {
            range.include(step.from), range.include(step.to);
            words = std::max(words, drawing::width_of_words(step.label));
        }
    }
    range.widen();
    Sheet sheet(title, told);
    const int x0 = page_left + words + 40, wide = Sheet::widest - Sheet::margin - x0 - 60, line = 34;
    const double unit = wide / range.length();
    const auto x = [&](double at) { return x0 + rounded((at - range.low) * unit); };
    int rows = 0;
    for (const auto& walk : all.walks) rows += 3 + static_cast<int>(walk.steps.size());
    const int top = sheet.top() + 8, bottom = top + rows * line;
    scale_below(sheet, range, tick_of(range.length(), 6), unit, x0, bottom, top);
    sheet.rule(x0, bottom, x0 + wide, bottom, "t-axis");
    sheet.text(page_left, bottom + 32, all.axis, "t-quiet");
    int y = top;
    for (const auto& walk : all.walks) {
        sheet.text(page_left, y + 6, walk.name, "t-strong");
        int last = x0;
        for (const auto& step : walk.steps) {
            y += line;
            sheet.text(page_left, y + 6, step.label);
            if (x(step.from) == last && &step != &walk.steps.front())
                sheet.rule(x(step.from), y - line, x(step.from), y, "s-dotted");
            sheet.circle(x(step.from), y, 5, "s-two");
            sheet.arrow(x(step.from), y, x(step.to), y, "s-bad");
            last = x(step.to);
        }
        y += line;
        sheet.text(page_left, y + 6, walk.end, "t-good");
        y += 2 * line;
    }
    return sheet;
}

}  // namespace tally::lesson
