// A `Sheet` writes its elements as SVG in the order of the calls, for a light or a dark page.
#include "tally/tools/sheet.hpp"

#include <algorithm>
#include <cmath>

#include "tally/base/text.hpp"
#include "tally/tools/svg.hpp"

namespace tally::drawing {

namespace {

using svg::formatted;

// Letters of 18 px and of 22 px are at most this wide.
constexpr int char_width = 11, strong_width = 14;

const char* const styles =
    ".t-text{white-space:pre}\n"
    ".t-strong{font-size:22px;font-weight:bold}\n"
    ".t-quiet{fill:#59636e}\n"
    ".t-good{fill:#137333}\n"
    ".t-bad{fill:#b3400a}\n"
    ".t-name{font-weight:bold}\n"
    ".s-box{fill:#ffffff;stroke-width:2}\n"
    ".s-parameter,.s-inner{stroke:#0b57d0}\n"
    ".s-inner{fill:none;stroke-width:2}\n"
    ".s-data{stroke:#59636e}\n"
    ".s-operation{stroke:#137333}\n"
    ".s-loss{stroke:#8430ce;stroke-width:4}\n"
    ".s-saved{fill:#ffe69a}\n"
    ".s-again{stroke-dasharray:7 5}\n"
    ".s-band{fill:#f4f6f8;stroke:#d5dbe1}\n"
    ".s-cell,.s-blank{fill:#ffffff;stroke:#59636e;stroke-width:1}\n"
    ".s-blank{stroke-dasharray:3 5}\n"
    ".s-own{fill:#dbe9ff;stroke:#0b57d0;stroke-width:3}\n"
    ".s-kept{fill:#ffe69a;stroke:#9a6700}\n"
    ".s-ring,.s-line,.s-dashed,.s-dotted,.s-good,.s-bad{fill:none;stroke:#3d444d;stroke-width:2}\n"
    ".s-dashed{stroke-dasharray:9 6}\n"
    ".s-dotted{stroke-dasharray:2 6}\n"
    ".s-good{stroke:#137333}\n"
    ".s-bad{stroke:#b3400a}\n"
    ".s-one{fill:none;stroke:#b3400a;stroke-width:2}\n"
    ".s-two{fill:#0b57d0;stroke:#0b57d0;stroke-width:2}\n"
    ".s-truth{fill:none;stroke:#1f2328;stroke-width:5}\n"
    ".s-head{fill:#3d444d;stroke-width:0}\n"
    ".s-head.s-good{fill:#137333}\n"
    ".s-head.s-bad{fill:#b3400a}\n";

const char* const dark =
    ".t-quiet{fill:#9198a1}\n"
    ".t-good{fill:#56d364}\n"
    ".t-bad{fill:#ffa657}\n"
    ".s-box{fill:#0d1117}\n"
    ".s-parameter,.s-inner{stroke:#79b5ff}\n"
    ".s-data{stroke:#9198a1}\n"
    ".s-operation{stroke:#56d364}\n"
    ".s-loss{stroke:#d2a8ff}\n"
    ".s-saved{fill:#574200}\n"
    ".s-band{fill:#161b22;stroke:#3d444d}\n"
    ".s-cell,.s-blank{fill:#0d1117;stroke:#9198a1}\n"
    ".s-own{fill:#12305c;stroke:#79b5ff}\n"
    ".s-kept{fill:#574200;stroke:#e3b341}\n"
    ".s-ring,.s-line,.s-dashed,.s-dotted{stroke:#b1bac4}\n"
    ".s-good{stroke:#56d364}\n"
    ".s-bad,.s-one{stroke:#ffa657}\n"
    ".s-two{fill:#79b5ff;stroke:#79b5ff}\n"
    ".s-truth{stroke:#e6edf3}\n"
    ".s-head{fill:#b1bac4}\n"
    ".s-head.s-good{fill:#56d364}\n"
    ".s-head.s-bad{fill:#ffa657}\n";

bool has(const std::string& style, const char* one) { return style.find(one) != std::string::npos; }

}  // namespace

int width_of_words(const std::string& words, const std::string& style) {
    return detail::text_columns(words) *
           (has(style, "t-strong") || has(style, "t-title") ? strong_width : char_width);
}

Sheet::Sheet(std::string title, std::string told) : title_(std::move(title)), told_(std::move(told)) {
    text(margin, margin + 22, title_, "t-title");
}

void Sheet::cover(int x, int y) {
    right_ = std::max(right_, x);
    bottom_ = std::max(bottom_, y);
}

int Sheet::text(int x, int y, const std::string& words, const std::string& style) {
    const int width = width_of_words(words, style);
    const int left = has(style, "t-middle") ? x - width / 2 : has(style, "t-end") ? x - width : x;
    words_.push_back({left, y - 17, left + width, y + 5, words});
    cover(left + width, y + 5);
    body_ += formatted("<text x=\"%d\" y=\"%d\" class=\"t-text", x, y) + (style.empty() ? "" : " ") + style +
             "\">" + escape_xml(words) + "</text>\n";
    return left + width;
}

void Sheet::rule(int x1, int y1, int x2, int y2, const std::string& style) {
    cover(std::max(x1, x2), std::max(y1, y2));
    body_ += svg::rule(x1, y1, x2, y2, style.c_str());
}

void Sheet::arrow(int x1, int y1, int x2, int y2, const std::string& style) {
    const double length = std::hypot(x2 - x1, y2 - y1);
    if (length < 1) return;
    const double along = (x2 - x1) / length, across = (y2 - y1) / length, head = std::min(14.0, length);
    const auto place = [&](double back, double aside) {
        return formatted("%d,%d", static_cast<int>(std::lround(x2 - along * back + across * aside)),
                         static_cast<int>(std::lround(y2 - across * back - along * aside)));
    };
    body_ +=
        formatted("<path d=\"M%d,%d L", x1, y1) + place(head, 0) + "\" class=\"s-line " + style + "\"/>\n";
    body_ += "<path d=\"M" + place(0, 0) + " L" + place(head, 7) + " L" + place(head, -7) +
             " Z\" class=\"s-head " + style + "\"/>\n";
    cover(std::max(x1, x2), std::max(y1, y2));
}

void Sheet::box(int x, int y, int w, int h, const std::string& style, int radius) {
    cover(x + w, y + h);
    body_ += formatted("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" class=\"", x, y, w, h,
                       radius) +
             style + "\"/>\n";
}

void Sheet::circle(int x, int y, int radius, const std::string& style) {
    cover(x + radius, y + radius);
    body_ += formatted("<circle cx=\"%d\" cy=\"%d\" r=\"%d\" class=\"", x, y, radius) + style + "\"/>\n";
}

void Sheet::path(const std::string& commands, const std::string& style, const Words& covers) {
    cover(covers.right, covers.bottom);
    body_ += "<path d=\"" + commands + "\" class=\"" + style + "\"/>\n";
}

std::string Sheet::svg() const {
    std::string told = told_;
    for (std::size_t i = 1; told_.empty() && i < words_.size(); ++i)
        told += (i > 1 ? ", " : "") + words_[i].text;
    return svg::page(width(), height(), title_, told, styles, dark) + "<g xml:space=\"preserve\">\n" + body_ +
           "</g>\n</svg>\n";
}

}  // namespace tally::drawing
