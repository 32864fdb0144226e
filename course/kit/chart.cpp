// Draws block charts and scatter plots with characters.
#include "course/kit/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "course/kit/text.hpp"

namespace tally::lesson {

namespace {
struct Range {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();

    void include(double value) {
        if (!std::isfinite(value)) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    bool empty() const { return low > high; }
    std::size_t cell(double value, std::size_t n) const {
        if (high == low) return n / 2;
        return static_cast<std::size_t>(
            std::lround((value - low) / (high - low) * static_cast<double>(n - 1)));
    }
};

std::string label(double value) { return fmt::format("{:.4g}", value); }

constexpr std::string_view marks = "ox+*#@%&";

std::vector<std::string> points(const Plot& plot, std::size_t width) {
    constexpr std::size_t rows = 7;
    Range x, y;
    for (const auto& series : plot.series) {
        for (std::size_t i = 0; i < series.x.size(); ++i) {
            if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
            x.include(series.x[i]);
            y.include(series.y[i]);
        }
    }
    if (x.empty()) return {"(nothing finite to draw)"};

    const std::string top = label(y.high), bottom = label(y.low);
    const std::size_t margin = std::max(width_of(top), width_of(bottom));
    const std::size_t columns = width > margin + 12 ? std::min<std::size_t>(width - margin - 2, 60) : 10;
    std::vector<std::string> grid(rows, std::string(columns, ' '));
    std::vector<std::string> legend;
    for (std::size_t s = 0; s < plot.series.size(); ++s) {
        const auto& series = plot.series[s];
        const char mark = marks[s % marks.size()];
        legend.push_back(fmt::format("{} {}", mark, series.label));
        for (std::size_t i = 0; i < series.x.size(); ++i) {
            if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
            grid[rows - 1 - y.cell(series.y[i], rows)][x.cell(series.x[i], columns)] = mark;
        }
    }

    std::vector<std::string> lines;
    for (std::size_t row = 0; row < rows; ++row) {
        const std::string& name = row == 0 ? top : row == rows - 1 ? bottom : std::string();
        std::string line = padded_left(name, margin) + " |" + grid[row];
        line.erase(line.find_last_not_of(' ') + 1);
        lines.push_back(std::move(line));
    }
    const std::string left = label(x.low), right = label(x.high);
    lines.push_back(std::string(margin + 2, ' ') + left +
                    padded_left(right, columns > left.size() ? columns - left.size() : 0));
    for (auto& line : wrapped(legend, "    ", width - 2, 2)) lines.push_back("  " + line);
    return lines;
}

std::vector<std::string> bars(const Plot& plot, std::size_t width, bool ascii) {
    constexpr std::size_t rows = 4;
    constexpr std::array<std::string_view, 9> blocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const auto& heights = plot.series.front().y;
    Range y;
    y.include(0);  // bars begin at zero, so that their heights are proportional to the values
    for (double height : heights) y.include(height);
    if (heights.empty() || y.low < 0 || y.high == 0) return points(plot, width);

    const std::string top = label(y.high);
    const std::size_t margin = std::max<std::size_t>(width_of(top), 1);
    const std::size_t available = width > margin + 12 ? std::min<std::size_t>(width - margin - 2, 60) : 10;
    const std::size_t columns = std::min(available, heights.size());
    const std::size_t thickness = std::clamp<std::size_t>(available / columns, 1, 4);

    std::vector<std::string> lines(rows);
    for (std::size_t column = 0; column < columns; ++column) {
        double height = 0;  // the largest height in this column, so that a peak stays visible
        for (std::size_t i = column * heights.size() / columns; i < (column + 1) * heights.size() / columns;
             ++i) {
            if (std::isfinite(heights[i])) height = std::max(height, heights[i]);
        }
        auto eighths = static_cast<std::size_t>(std::lround(height / y.high * static_cast<double>(rows * 8)));
        for (std::size_t row = rows; row-- > 0;) {
            const std::size_t here = std::min<std::size_t>(eighths, 8);
            eighths -= here;
            const std::string_view block = ascii ? (here >= 4 ? "#" : " ") : blocks[here];
            lines[row] += repeated(block, thickness > 1 ? thickness - 1 : 1);
            if (thickness > 1) lines[row] += ' ';
        }
    }
    for (std::size_t row = 0; row < rows; ++row) {
        const std::string name = row == 0 ? top : row == rows - 1 ? "0" : "";
        lines[row] = padded_left(name, margin) + " |" + lines[row];
        lines[row].erase(lines[row].find_last_not_of(' ') + 1);
    }
    lines.push_back(std::string(margin + 2, ' ') + fmt::format("1 .. {}", heights.size()));
    return lines;
}
}  // namespace

std::vector<std::string> chart_lines(const Plot& plot, std::size_t width, bool ascii) {
    return plot.bars ? bars(plot, width, ascii) : points(plot, width);
}

}  // namespace tally::lesson
