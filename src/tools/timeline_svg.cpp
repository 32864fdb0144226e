// Timeline::svg() draws the bytes of each memory class as stacked areas, and marks the peak.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tally/base/text.hpp"
#include "tally/tools/svg.hpp"
#include "tally/tools/timeline.hpp"

namespace tally {
namespace {

constexpr int letter = 11;  // width of a letter
constexpr int width = 960, height = 540, left = 136, right = 928, top = 100, bottom = 412;
constexpr const char* names[] = {"parameters", "gradients", "saved", "temporary"};
static_assert(std::size(names) == memory::detail::memory_classes);
constexpr auto temporary = static_cast<std::size_t>(MemoryClass::temporary);

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
    ".t-mark{fill:#1f2328}\n"
    ".t-named{fill:#8430ce}\n";

constexpr const char* dark =
    ".t-class0{fill:#79b5ff}\n"
    ".t-class1{fill:#ffa657}\n"
    ".t-class2{fill:#e3b341}\n"
    ".t-class3{fill:#6e7681}\n"
    ".t-back{fill:#b1bac4}\n"
    ".t-forward{fill:#3d444d}\n"
    ".t-peak{stroke:#e6edf3}\n"
    ".t-mark{fill:#e6edf3}\n"
    ".t-named{fill:#d2a8ff}\n";

// A `Layer` is one of the stacked areas, and shows all or a part of the bytes of a memory class.
struct Layer {
    std::string name, style;
    std::size_t memory_class, from, most;  // shows the bytes of this class after `from`, at most `most`
    std::size_t bytes(const Timeline::Sample& sample) const {
        const std::size_t all = sample.in_use_by[memory_class];
        return std::min(most, all - std::min(all, from));
    }
};

// Draws the named bytes below the other temporary bytes, because the named bytes change less often.
std::vector<Layer> layers_of(const Timeline::Share& named) {
    constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
    std::vector<Layer> layers;
    for (std::size_t memory_class = 0; memory_class < memory::detail::memory_classes; ++memory_class) {
        if (memory_class == static_cast<std::size_t>(MemoryClass::saved) && named.bytes > 0)
            layers.push_back({detail::clean_text(named.name, 24), "t-named", temporary, 0, named.bytes});
        layers.push_back({names[memory_class], formatted("t-class%d", static_cast<int>(memory_class)),
                          memory_class, memory_class == temporary ? named.bytes : 0, all});
    }
    return layers;
}

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

// Draws a layer as an area with steps on top of the lower layers.
std::string area(const std::vector<Timeline::Sample>& shown, const std::vector<Layer>& layers,
                 std::size_t layer, const Scale& scale) {
    std::string over, under;
    int x = scale.x(0), y = 0, base = 0;
    const auto step = [&](int to) {
        if (to > x) {
            over += formatted("%d,%d %d,%d ", x, y, to, y);
            under = formatted("%d,%d %d,%d ", to, base, x, base) + under;
        }
        x = to;
    };
    for (std::size_t i = 0; i < shown.size(); ++i) {
        std::size_t below = 0;
        for (std::size_t l = 0; l < layer; ++l) below += layers[l].bytes(shown[i]);
        const int new_y = scale.y(below + layers[layer].bytes(shown[i])), new_base = scale.y(below);
        if (new_y != y || new_base != base) step(scale.x(i));
        y = new_y, base = new_base;
    }
    step(scale.x(shown.size()));
    under.pop_back();
    return "<polygon points=\"" + over + under + "\" class=\"" + layers[layer].style + "\"/>\n";
}

// Draws marks below the axis that distinguish forward and backward events.
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

std::string Timeline::svg(const std::string& title, const Share& of_temporary) const {
    require_samples();
    const std::vector<Sample> shown = detail::highest(samples_, (right - left) / 2);
    const Scale scale{std::max<std::size_t>(peak_.bytes, 64), shown.size()};
    const std::string head = detail::clean_text(title, 60), peak = "peak " + detail::to_text(peak_);

    std::string svg =
        svg::page(width, height, head,
                  "Live bytes over " + std::to_string(events_) + " events, by class: " + peak + ".", styles,
                  dark) +
        text(left, 40, "t-title", head);

    std::size_t step = 64;
    while (scale.highest / step > 6) step *= 2;
    for (std::size_t tick = 0; tick <= scale.highest; tick += step) {
        const int y = scale.y(tick);
        svg += rule(left, y, right, y, "t-rule");
        svg += text(left - 12, y + 6, "t-end", detail::format_bytes(tick));
    }
    const std::vector<Layer> layers = layers_of(of_temporary);
    for (std::size_t layer = 0; layer < layers.size(); ++layer) svg += area(shown, layers, layer, scale);
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
    int column = left;
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {  // in the order of the stack
        svg += box(column, bottom + 62, 14, 14, layer->style);
        svg += text(column + 22, bottom + 75, "", layer->name);
        column += layers.size() > memory::detail::memory_classes
                      ? 46 + letter * detail::text_columns(layer->name)
                      : 200;
    }
    if (all)
        svg += box(left, bottom + 94, 14, 14, "t-forward") + text(left + 22, bottom + 107, "", "computed") +
               box(left + 200, bottom + 94, 14, 14, "t-back") +
               text(left + 222, bottom + 107, "", "gone back through");
    return svg + "</svg>\n";
}

}  // namespace tally
