// Draws sweeps as curves over two logarithmic axes, and writes the name of each curve at the curve's end.
#include <algorithm>
#include <cmath>

#include "bench/table/sweeps.hpp"
#include "tally/base/error.hpp"
#include "tally/base/text.hpp"
#include "tally/tools/svg.hpp"

namespace tally::bench {
namespace {

constexpr int width = 960, height = 540, left = 112, right = 640, top = 76, bottom = 452;

using svg::formatted, svg::rule, svg::text;

struct Axis {
    double from, to;     // logarithms
    int at_from, at_to;  // pixels
    int place(double value) const {
        return at_from +
               static_cast<int>(std::lround((std::log10(value) - from) / (to - from) * (at_to - at_from)));
    }
};

// Returns an axis that contains `low` and `high`, and whose end is at least `least` times its beginning.
Axis axis_for(double low, double high, double least, int at_from, int at_to) {
    double from = std::log10(low), to = std::log10(high);
    const double missing = std::log10(least) - (to - from);
    if (missing > 0) from -= missing / 2, to += missing / 2;
    const double around = (to - from) * 0.04;
    return {from - around, to + around, at_from, at_to};
}

// Returns ticks at powers of ten. An axis with few powers of ten also has ticks at 2 and 5 times a power.
std::vector<double> ticks(const Axis& axis) {
    std::vector<double> all;
    const bool few = axis.to - axis.from < 3;
    for (double power = std::floor(axis.from); power <= axis.to; ++power)
        for (const double digit : {1.0, 2.0, 5.0}) {
            const double tick = digit * std::pow(10, power), at = std::log10(tick);
            if (at >= axis.from && at <= axis.to && (digit == 1 || few)) all.push_back(tick);
        }
    return all;
}

std::string in_short(double number) {
    if (number >= 1e6) return detail::to_text(number / 1e6, 6) + "M";
    if (number >= 1e4) return detail::to_text(number / 1e3, 6) + "k";
    return detail::to_text(number, 6);
}

// In every picture tally is blue, LibTorch and PyTorch are orange, JAX is purple, and a program without
// autograd is green. A second curve of the same colour is dashed.
const char* colour_of(const std::string& name) {
    if (name.starts_with("tally")) return "#0b57d0";
    if (name.starts_with("JAX")) return "#7e22ce";
    return name.find("Torch") != std::string::npos ? "#c2410c" : "#15803d";
}
const char* dashes_of(const std::string& name) {
    return name.find(',') == std::string::npos && !name.starts_with("PyTorch") ? "none" : "8,5";
}

// The font of the title is small, because titles of sweeps are long.
constexpr const char* styles = ".t-title{font-size:20px}\n";

std::string grid(const Sweep& sweep, const Axis& x, const Axis& y) {
    std::string svg;
    for (const double tick : ticks(y)) {
        svg += rule(left, y.place(tick), right, y.place(tick), "t-rule");
        svg += text(left - 12, y.place(tick) + 6, "t-end", in_short(tick));
    }
    for (const double tick : ticks(x)) {
        svg += rule(x.place(tick), bottom, x.place(tick), bottom + 8, "t-axis");
        svg += text(x.place(tick), bottom + 32, "t-middle", in_short(tick));
    }
    svg += rule(left, bottom, right, bottom, "t-axis") + rule(left, top, left, bottom, "t-axis");
    svg += text((left + right) / 2, bottom + 64, "t-middle", sweep.x);
    return svg + text(left, top - 10, "", sweep.y);
}

std::string curve(const Line& line, const Axis& x, const Axis& y) {
    const char* const colour = colour_of(line.name);
    std::string points, marks;
    for (const auto& [at, value] : line.points) {
        points += (points.empty() ? "" : " ") + formatted("%d,%d", x.place(at), y.place(value));
        marks += formatted("<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"/>\n", x.place(at), y.place(value),
                           colour);
    }
    return "<polyline points=\"" + points + "\" fill=\"none\" stroke=\"" + colour +
           "\" stroke-width=\"2\" stroke-dasharray=\"" + dashes_of(line.name) + "\"/>\n" + marks;
}

// Returns the names at the ends of the curves, at positions where the names do not overlap.
std::string names(const std::vector<Line>& lines, const Axis& y) {
    std::vector<std::pair<int, const Line*>> all;
    for (const Line& line : lines) all.emplace_back(y.place(line.points.back().second), &line);
    std::sort(all.begin(), all.end());
    for (std::size_t i = 1; i < all.size(); ++i) all[i].first = std::max(all[i].first, all[i - 1].first + 22);
    int lowest = bottom + 4;
    std::string svg;
    for (auto name = all.rbegin(); name != all.rend(); ++name, lowest -= 22) {
        lowest = std::min(lowest, name->first);
        svg += formatted("<text x=\"%d\" y=\"%d\" class=\"t-text\" style=\"fill:%s\">", right + 12,
                         lowest + 6, colour_of(name->second->name)) +
               escape_xml(name->second->name) + "</text>\n";
    }
    return svg;
}

}  // namespace

std::string to_svg(const Sweep& sweep) {
    double low_x = 1e300, high_x = 0, low_y = 1e300, high_y = 0;
    for (const Line& line : sweep.lines) {
        if (line.points.empty()) throw Error("[bench] the curve of '" + line.name + "' has no points");
        for (const auto& [x, y] : line.points) {
            if (!(x > 0 && y > 0))
                throw Error("[bench] a logarithmic axis cannot show numbers that are not positive");
            low_x = std::min(low_x, x), high_x = std::max(high_x, x);
            low_y = std::min(low_y, y), high_y = std::max(high_y, y);
        }
    }
    const Axis x = axis_for(low_x, high_x, 2, left, right), y = axis_for(low_y, high_y, 4, bottom, top);
    std::string svg = svg::page(width, height, sweep.title, sweep.y + " over " + sweep.x, styles) +
                      text(left, 36, "t-title", sweep.title) + grid(sweep, x, y);
    for (const Line& line : sweep.lines) svg += curve(line, x, y);
    return svg + names(sweep.lines, y) + "</svg>\n";
}

}  // namespace tally::bench
