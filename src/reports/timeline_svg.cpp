// A timeline as a picture: areas stacked by class, the peak marked.
#include <algorithm>
#include <cmath>

#include "tally/base/text.hpp"
#include "tally/drawing/svg.hpp"
#include "tally/reports/timeline.hpp"

namespace tally {
namespace {

constexpr int width = 960, height = 540, left = 136, right = 928, top = 100, bottom = 412;
constexpr const char* names[] = {"parameters", "gradients", "saved", "temporary"};
static_assert(std::size(names) == memory_classes);

using svg::formatted, svg::rule, svg::text;

std::string box(int x, int y, int w, int h, const std::string& style) {
    return formatted("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"", x, y, w, h) + style +
           "\"/>\n";
}

constexpr const char* styles =
    ".t-class0{fill:#0b57d0}\n"
    ".t-class1{fill:#b3400a}\n"
    ".t-class2{fill:#f2c94c}\n"
    ".t-class3{fill:#aab2bb}\n"
    ".t-back{fill:#59636e}\n"
    ".t-forward{fill:#d5dbe1}\n"
    ".t-peak{stroke:#1f2328;stroke-width:1;stroke-dasharray:5 4}\n"
    ".t-mark{fill:#1f2328}\n";

struct Scale {
    std::size_t highest;  // bytes
    std::size_t events;   // samples shown
    int y(std::size_t bytes) const {
        return bottom - static_cast<int>(std::lround(static_cast<double>(bytes) /
                                                     static_cast<double>(highest) * (bottom - top)));
    }
    int x(std::size_t event) const {
        return left + static_cast<int>(static_cast<std::size_t>(right - left) * event / events);
    }
};

// A step for each sample, from the sum of the classes below to that with its own.
std::string area(const std::vector<Timeline::Sample>& shown, std::size_t held_as, const Scale& scale) {
    std::string over, under;
    for (std::size_t i = 0; i < shown.size(); ++i) {
        std::size_t below = 0;
        for (std::size_t c = 0; c < held_as; ++c) below += shown[i].in_use_by[c];
        const int y = scale.y(below + shown[i].in_use_by[held_as]), base = scale.y(below);
        over += formatted("%d,%d %d,%d ", scale.x(i), y, scale.x(i + 1), y);
        under = formatted("%d,%d %d,%d ", scale.x(i + 1), base, scale.x(i), base) + under;
    }
    under.pop_back();
    return "<polygon points=\"" + over + under +
           formatted("\" class=\"t-class%d\"/>\n", static_cast<int>(held_as));
}

// Under the axis: where operations are computed, where a sweep goes back.
std::string directions(const std::vector<Timeline::Sample>& shown, const Scale& scale) {
    std::string all;
    for (std::size_t i = 0, next; i < shown.size(); i = next) {
        for (next = i; next < shown.size() && shown[next].forward == shown[i].forward;) ++next;
        all += box(scale.x(i), bottom + 4, scale.x(next) - scale.x(i), 10,
                   shown[i].forward ? "t-forward" : "t-back");
    }
    return all;
}

}  // namespace

std::string Timeline::svg(const std::string& title) const {
    if (samples_.empty()) throw Error("[timeline] nothing was computed while it looked on");
    const std::vector<Sample> shown = highest(samples_, (right - left) / 2);
    const Scale scale{std::max<std::size_t>(peak_.bytes, 64), shown.size()};
    const std::string head = clean_text(title, 60), peak = "peak " + in_words(peak_);

    std::string svg =
        svg::page(width, height, head,
                  "Live bytes over " + std::to_string(events_) + " events, by class: " + peak + ".", styles) +
        text(left, 40, "t-title", head);

    std::size_t step = 64;
    while (scale.highest / step > 6) step *= 2;
    for (std::size_t tick = 0; tick <= scale.highest; tick += step) {
        const int y = scale.y(tick);
        svg += rule(left, y, right, y, "t-rule");
        svg += text(left - 12, y + 6, "t-end", bytes_in_words(tick));
    }
    for (std::size_t held_as = 0; held_as < memory_classes; ++held_as) svg += area(shown, held_as, scale);
    const bool all = shown.size() == events_;
    if (all) svg += directions(shown, scale);
    svg += formatted("<path d=\"M%d,%d L%d,%d L%d,%d\" class=\"t-axis\" fill=\"none\"/>\n", left, top, left,
                     bottom, right, bottom);

    const auto at =
        std::ranges::find_if(shown, [&](const Sample& sample) { return sample.event >= peak_.at.event; });
    const auto place = static_cast<std::size_t>(std::min(at - shown.begin(), std::ssize(shown) - 1));
    const int x = (scale.x(place) + scale.x(place + 1)) / 2;
    svg += rule(left, top, right, top, "t-peak");
    svg += formatted("<circle cx=\"%d\" cy=\"%d\" r=\"5\" class=\"t-mark\"/>\n", x, top);
    svg += text(left, 76, "", peak);

    svg += text(left, bottom + 40, "", "1") + text(right, bottom + 40, "t-end", std::to_string(events_));
    svg += text((left + right) / 2, bottom + 40, "t-middle", "events");
    for (int held_as = memory_classes; held_as-- > 0;) {  // as they are stacked
        const int column = left + 200 * (memory_classes - 1 - held_as);
        svg += box(column, bottom + 62, 14, 14, formatted("t-class%d", held_as));
        svg += text(column + 22, bottom + 75, "", names[held_as]);
    }
    if (all)
        svg += box(left, bottom + 94, 14, 14, "t-forward") + text(left + 22, bottom + 107, "", "computed") +
               box(left + 200, bottom + 94, 14, 14, "t-back") +
               text(left + 222, bottom + 107, "", "gone back through");
    return svg + "</svg>\n";
}

}  // namespace tally
