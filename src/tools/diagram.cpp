// to_svg() draws a diagram by its layout, and to_dot() writes the same graph for Graphviz.
#include "tally/tools/diagram.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <map>

#include "tally/base/error.hpp"
#include "tally/base/text.hpp"
#include "tally/tools/diagram_layout.hpp"
#include "tally/tools/svg.hpp"
#include "tally/tools/xml.hpp"

namespace tally {

namespace {

using drawing::Outline;
using drawing::Point;
using drawing::Row;
using drawing::Shape;
using Role = detail::Diagram::Role;

constexpr int margin = 32, legend_pitch = 40;

const char* to_string(Role role) {
    constexpr const char* words[] = {"parameter", "data", "operation", "loss"};
    return words[static_cast<int>(role)];
}

std::string escape_dot(const std::string& text) {
    std::string result;
    for (char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result;
}

std::string whole(const std::string& text) { return detail::clean_text(text, 4000); }

// "parameter w (3): value [..], gradient [..]"
std::string sentence(const detail::Diagram::Box& box) {
    std::string text = std::string(to_string(box.role)) + " " + whole(box.name);
    if (!box.shape.empty()) text += " " + whole(box.shape);
    if (!box.value.empty()) text += ": value " + whole(box.value);
    if (!box.gradient.empty())
        text += (box.value.empty() ? ": gradient " : ", gradient ") + whole(box.gradient);
    if (box.saved) text += ", saved";
    if (box.recomputed) text += ", computed twice";
    return text;
}

std::string default_description(const detail::Diagram& diagram) {
    std::string text = "A computation graph, from left to right:";
    for (Role role : {Role::parameter, Role::data, Role::operation, Role::loss}) {
        const auto boxes = std::count_if(diagram.boxes.begin(), diagram.boxes.end(),
                                         [&](const auto& b) { return b.role == role; });
        if (boxes > 0)
            text += (text.back() == ':' ? " " : ", ") + std::to_string(boxes) + " " + to_string(role);
    }
    text += ". Solid arrows carry values forward";
    const bool back = std::any_of(diagram.boxes.begin(), diagram.boxes.end(), [](const auto& box) {
        return std::any_of(box.inputs.begin(), box.inputs.end(),
                           [](const auto& input) { return input.back; });
    });
    return text + (back ? "; dashed arrows carry gradients back, and where several meet they add up." : ".");
}

// Builds the text of an SVG picture with integer coordinates.
class Svg {
public:
    Svg& operator<<(const std::string& text) {
        text_ += text;
        return *this;
    }
    Svg& operator<<(const char* text) {
        text_ += text;
        return *this;
    }
    Svg& operator<<(int number) {
        text_ += std::to_string(number);
        return *this;
    }
    void rectangle(int x, int y, int w, int h, int radius, const char* style) {
        *this << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << w << "\" height=\"" << h
              << "\" rx=\"" << radius << "\" class=\"" << style << "\"/>\n";
    }
    void line(Point a, Point b, const char* style) {
        *this << "<path d=\"M" << a.x << "," << a.y << " H" << b.x << "\" class=\"" << style << "\"/>\n";
    }
    // Writes a text that is vertically centred at y.
    void write(int x, int y, const char* style, const std::string& text) {
        *this << "<text x=\"" << x << "\" y=\"" << y + 6 << "\" class=\"" << style
              << "\" xml:space=\"preserve\">" << escape_xml(text) << "</text>\n";
    }
    void arrow(const std::vector<Point>& points, const char* style, const char* head_style);
    void outline(const Shape& shape, const std::string& style);
    void rows(const Shape& shape);
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

int towards(int from, int to, int distance) {
    return from + (to > from ? distance : to < from ? -distance : 0);
}

// Draws an arrow with rounded corners through the points. The last piece of the arrow must be horizontal.
void Svg::arrow(const std::vector<Point>& points, const char* style, const char* head_style) {
    const Point tip = points.back(), before = points[points.size() - 2];
    const int head = 12;
    const Point neck{towards(tip.x, before.x, head), tip.y};
    *this << "<path d=\"M" << points.front().x << "," << points.front().y;
    for (std::size_t i = 1; i + 1 < points.size(); ++i) {
        const Point a = points[i - 1], b = points[i], c = points[i + 1];
        const int before_it = std::abs(b.x - a.x) + std::abs(b.y - a.y),
                  after_it = std::abs(c.x - b.x) + std::abs(c.y - b.y);
        const int radius = std::min({10, before_it / 2, after_it / 2});
        *this << " L" << towards(b.x, a.x, radius) << "," << towards(b.y, a.y, radius);
        *this << " Q" << b.x << "," << b.y << " " << towards(b.x, c.x, radius) << ","
              << towards(b.y, c.y, radius);
    }
    *this << " L" << neck.x << "," << neck.y << "\" class=\"" << style << "\"/>\n";
    *this << "<path d=\"M" << tip.x << "," << tip.y << " L" << neck.x << "," << tip.y - 6 << " L" << neck.x
          << "," << tip.y + 6 << " Z\" class=\"" << head_style << "\"/>\n";
}

void Svg::outline(const Shape& s, const std::string& style) {
    const auto rounded = [&](int radius) { rectangle(s.x, s.y, s.w, s.h, radius, style.c_str()); };
    switch (s.outline) {
        case Outline::box:
            rounded(4);
            break;
        case Outline::double_box:
            rounded(6);
            rectangle(s.x + 5, s.y + 5, s.w - 10, s.h - 10, 3, "t-inner");
            break;
        case Outline::pill:
            rounded(s.h / 2);
            break;
        case Outline::circle:
            *this << "<circle cx=\"" << s.x + s.w / 2 << "\" cy=\"" << s.y + s.h / 2 << "\" r=\"" << s.h / 2
                  << "\" class=\"" << style << "\"/>\n";
            break;
        case Outline::hexagon: {
            const int slant = s.inset(s.h / 2), right = s.x + s.w, bottom = s.y + s.h, middle = s.y + s.h / 2;
            *this << "<path d=\"M" << s.x << "," << middle << " L" << s.x + slant << "," << s.y << " H"
                  << right - slant << " L" << right << "," << middle << " L" << right - slant << "," << bottom
                  << " H" << s.x + slant << " Z\" class=\"" << style << "\"/>\n";
        }
    }
}

void Svg::rows(const Shape& shape) {
    const int x = shape.x + shape.w / 2, middle = shape.y + shape.h / 2;
    for (const Row& row : shape.rows) {
        const int y = middle + row.dy;
        if (row.kind == Row::Kind::head) {
            *this << "<text x=\"" << x << "\" y=\"" << y + 6
                  << "\" class=\"t-text t-middle\" xml:space=\"preserve\"><tspan class=\"t-name\">"
                  << escape_xml(row.name) << "</tspan>";
            if (!row.text.empty())
                *this << "<tspan class=\"t-shape\"> " << escape_xml(row.text) << "</tspan>";
            *this << "</text>\n";
        } else if (row.kind == Row::Kind::value) {
            write(x, y, "t-text t-middle", row.text);
        } else {
            const int above = y - drawing::line_height / 2 - 5, half = std::max(row.width / 2, 20);
            line({x - half, above}, {x + half, above}, "t-rule");
            write(x, y, "t-text t-middle t-gradient", row.text);
        }
    }
}

const std::string style_sheet =
    "<style>\n"
    ".t-page{fill:#ffffff}\n"
    ".t-text{font-family:monospace;font-size:18px;fill:#1f2328}\n"
    ".t-title{font-size:22px;font-weight:bold}\n"
    ".t-middle{text-anchor:middle}\n"
    ".t-name{font-weight:bold}\n"
    ".t-shape,.t-lane{fill:#59636e}\n"
    ".t-gradient{fill:#b3400a}\n"
    ".t-band{fill:#f4f6f8;stroke:#d5dbe1}\n"
    ".t-wire{fill:none;stroke:#3d444d;stroke-width:2}\n"
    ".t-head{fill:#3d444d}\n"
    ".t-back{fill:none;stroke:#b3400a;stroke-width:2;stroke-dasharray:7 5}\n"
    ".t-back-head{fill:#b3400a}\n"
    ".t-rule{stroke:#b3400a;stroke-width:1;stroke-dasharray:4 4}\n"
    ".t-parameter,.t-data,.t-operation,.t-loss{fill:#ffffff;stroke-width:2}\n"
    ".t-parameter,.t-inner{stroke:#0b57d0}\n"
    ".t-inner{fill:none;stroke-width:2}\n"
    ".t-data{stroke:#59636e}\n"
    ".t-operation{stroke:#137333}\n"
    ".t-loss{stroke:#8430ce;stroke-width:3}\n"
    ".t-saved{fill:#ffe69a}\n"
    ".t-recomputed{fill:url(#t-hatch)}\n"
    ".t-blank{fill:#ffffff}\n" +
    svg::on_dark(
        ".t-page,.t-parameter,.t-data,.t-operation,.t-loss,.t-blank{fill:#0d1117}\n"
        ".t-text{fill:#e6edf3}\n"
        ".t-shape,.t-lane{fill:#9198a1}\n"
        ".t-gradient,.t-back-head{fill:#ffa657}\n"
        ".t-band{fill:#161b22;stroke:#3d444d}\n"
        ".t-wire{stroke:#b1bac4}\n"
        ".t-head{fill:#b1bac4}\n"
        ".t-back,.t-rule{stroke:#ffa657}\n"
        ".t-parameter,.t-inner{stroke:#79b5ff}\n"
        ".t-inner{fill:none}\n"
        ".t-data{stroke:#9198a1}\n"
        ".t-operation{stroke:#56d364}\n"
        ".t-loss{stroke:#d2a8ff}\n"
        ".t-saved{fill:#574200}\n"
        ".t-recomputed{fill:url(#t-hatch)}\n") +
    "</style>\n";

const char* const hatch =
    "<defs><pattern id=\"t-hatch\" width=\"10\" height=\"10\" patternUnits=\"userSpaceOnUse\">"
    "<path d=\"M0,0 H10 V10 H0 Z\" class=\"t-blank\"/><path d=\"M-2,2 L2,-2 M0,10 L10,0 M8,12 L12,8\" "
    "stroke=\"#e3b341\"/>"
    "</pattern></defs>\n";

std::string style_of(Role role, bool saved, bool recomputed) {
    return std::string("t-") + to_string(role) + (recomputed ? " t-recomputed" : saved ? " t-saved" : "");
}

class Legend {
public:
    Legend(const detail::Diagram& diagram, int width) : width_(width) {
        std::array<bool, 4> seen{};
        bool wires = false, back = false, saved = false, recomputed = false;
        for (const auto& box : diagram.boxes) {
            seen[static_cast<std::size_t>(box.role)] = true;
            (box.recomputed ? recomputed : saved) |= box.recomputed || box.saved;
            for (const auto& input : box.inputs) wires = true, back = back || input.back;
            back = back || !box.gradient.empty();
        }
        const std::array outlines{Outline::double_box, Outline::box, Outline::circle, Outline::hexagon};
        for (std::size_t i = 0; i < seen.size(); ++i) {
            const Role role = static_cast<Role>(i);
            if (seen[i]) add_shape(outlines[i], style_of(role, false, false), to_string(role));
        }
        if (saved) add_shape(Outline::box, style_of(Role::data, true, false), "saved");
        if (recomputed) add_shape(Outline::box, style_of(Role::data, false, true), "x2 computed twice");
        if (wires) add_arrow("value", false);
        if (back) add_arrow("gradient", true);
    }
    int width() const { return x_ - space; }  // width of the last line
    int height() const { return y_ + 28; }
    std::string take() { return svg_.take(); }

private:
    static constexpr int sign = 44, gap = 10, space = 26;
    int width_, x_ = 0, y_ = 0;
    Svg svg_;

    void make_room(const std::string& text) {
        const int needed = sign + gap + drawing::text_width(text);
        if (x_ > 0 && needed > width_ - x_) x_ = 0, y_ += legend_pitch;
    }
    void finish(const std::string& text, const char* style) {
        svg_.write(x_ + sign + gap, y_ + 14, style, text);
        x_ += sign + gap + drawing::text_width(text) + space;
    }
    void add_shape(Outline outline, const std::string& style, const std::string& text) {
        make_room(text);
        const bool round = outline == Outline::circle;
        svg_.outline({outline, round ? x_ + 8 : x_, y_, round ? 28 : sign, 28, {}}, style);
        finish(text, "t-text");
    }
    void add_arrow(const std::string& text, bool back) {
        make_room(text);
        const Point left{x_, y_ + 14}, right{x_ + sign, y_ + 14};
        if (back)
            svg_.arrow({right, left}, "t-back", "t-back-head");
        else
            svg_.arrow({left, right}, "t-wire", "t-head");
        finish(text, back ? "t-text t-gradient" : "t-text");
    }
};

const char* dot_style(Role role) {
    constexpr const char* styles[] = {"shape=box, peripheries=2, color=\"#0b57d0\"",
                                      "shape=box, color=\"#59636e\"", "shape=ellipse, color=\"#137333\"",
                                      "shape=hexagon, color=\"#8430ce\""};
    return styles[static_cast<int>(role)];
}

template <class S> std::string join_values(std::span<const S> values) {
    const std::size_t max_shown = 4, shown_of_more = 2;
    const std::size_t shown = values.size() > max_shown ? shown_of_more : values.size();
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) {
        const std::string number = detail::short_number(static_cast<double>(values[i]));
        text += std::string(number.size() < 7 ? 8 - number.size() : 1, ' ') + number;
    }
    if (shown < values.size()) text += " ..";
    if (text.empty()) return "[]";
    text.front() = '[';
    return text + "]";
}

}  // namespace

std::string detail::short_values(std::span<const double> values) { return join_values(values); }
std::string detail::short_values(std::span<const float> values) { return join_values(values); }

void detail::lanes_from_losses(detail::Diagram& diagram) {
    drawing::require_drawable(diagram);
    auto& boxes = diagram.boxes;
    const int none_yet = -2;
    int lanes = 0;
    for (auto& box : boxes) box.lane = box.role == Role::loss ? lanes++ : none_yet;
    for (std::size_t i = boxes.size(); i-- > 0;) {
        auto& box = boxes[i];
        if (box.lane == none_yet) box.lane = detail::Diagram::no_lane;  // leads to no loss
        for (const auto& input : box.inputs) {
            int& lane = boxes[static_cast<std::size_t>(input.from)].lane;
            if (lane != box.lane) lane = lane == none_yet ? box.lane : detail::Diagram::no_lane;
        }
    }
}

std::string detail::to_svg(const Diagram& diagram) {
    const drawing::Layout layout = [&] {
        detail::Diagram inner = diagram;
        if (inner.widest > 0) inner.widest = std::max(1, inner.widest - 2 * margin);
        return drawing::lay_out(inner);
    }();
    const std::string title = detail::clean_text(diagram.title, 80);
    const int top = margin + (title.empty() ? 0 : 52);
    const int one_line = Legend(diagram, INT_MAX).width();
    const int inner = std::max({layout.width, drawing::text_width(title) * 5 / 4, std::min(one_line, 960)});
    Legend legend(diagram, inner);
    const int left = margin + (inner - layout.width) / 2, legend_top = top + layout.height + 44;
    const int width = inner + 2 * margin, height = legend_top + legend.height() + margin;

    Svg svg;
    svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
        << "\" viewBox=\"0 0 " << width << " " << height
        << "\" role=\"img\" aria-labelledby=\"t-title t-desc\">\n";
    svg << "<title id=\"t-title\">" << escape_xml(title.empty() ? "Computation graph" : title)
        << "</title>\n";
    svg << "<desc id=\"t-desc\">"
        << escape_xml(diagram.description.empty() ? default_description(diagram) : whole(diagram.description))
        << "</desc>\n";
    svg << style_sheet;
    if (std::any_of(diagram.boxes.begin(), diagram.boxes.end(),
                    [](const auto& box) { return box.recomputed; }))
        svg << hatch;
    svg.rectangle(0, 0, width, height, 12, "t-page");
    if (!title.empty()) svg.write(margin, margin + 14, "t-text t-title", title);

    svg << "<g transform=\"translate(" << left << "," << top << ")\">\n";
    for (const auto& band : layout.bands) {
        svg.rectangle(band.x, band.y, band.w, band.h, 10, "t-band");
        if (!band.name.empty()) svg.write(band.x + 16, band.y + 24, "t-text t-lane", band.name);
    }
    for (std::size_t i = 0; i < layout.wires.size(); ++i) {
        const auto& wire = layout.wires[i];
        svg << "<g id=\"e" << static_cast<int>(i) << "\">\n";
        svg.arrow(wire.forward, "t-wire", "t-head");
        if (!wire.backward.empty()) svg.arrow(wire.backward, "t-back", "t-back-head");
        if (!wire.label.empty())
            svg.write(wire.label_at.x, wire.label_at.y - 6, "t-text t-middle t-gradient", wire.label);
        svg << "</g>\n";
    }
    for (std::size_t i = 0; i < layout.shapes.size(); ++i) {
        const auto& box = diagram.boxes[i];
        svg << "<g id=\"n" << static_cast<int>(i) << "\"><title>" << escape_xml(sentence(box))
            << "</title>\n";
        svg.outline(layout.shapes[i], style_of(box.role, box.saved, box.recomputed));
        svg.rows(layout.shapes[i]);
        svg << "</g>\n";
    }
    svg << "</g>\n<g transform=\"translate(" << margin << "," << legend_top << ")\">\n"
        << legend.take() << "</g>\n</svg>\n";
    return svg.take();
}

std::string detail::to_dot(const Diagram& diagram) {
    drawing::require_drawable(diagram);
    const auto quoted = [](const std::string& text) { return "\"" + escape_dot(whole(text)) + "\""; };
    const auto label = [](const detail::Diagram::Box& box) {
        std::string text = escape_dot(whole(box.name));
        if (!box.shape.empty()) text += " " + escape_dot(whole(box.shape));
        if (box.recomputed) text += " x2";
        if (!box.value.empty() || !box.gradient.empty()) text += "\\n" + escape_dot(whole(box.value));
        if (!box.gradient.empty()) text += " | " + escape_dot(whole(box.gradient));
        return text;
    };
    std::string dot = "digraph tally {\n    rankdir=LR;\n    label=" + quoted(diagram.title) +
                      ";\n    labelloc=t;\n    fontname=monospace;\n    fontsize=18;\n    node "
                      "[fontname=monospace, fontsize=18, style=filled, fillcolor=white];\n"
                      "    edge [fontname=monospace, fontsize=18];\n";
    std::map<int, std::string> lanes;  // the boxes of each lane, as DOT
    for (std::size_t i = 0; i < diagram.boxes.size(); ++i) {
        const auto& box = diagram.boxes[i];
        std::string& lane = lanes[std::max(box.lane, detail::Diagram::no_lane)];
        lane += "n" + std::to_string(i) + " [label=\"" + label(box) + "\", " + dot_style(box.role);
        if (box.recomputed) lane += ", style=\"filled,dashed\"";
        if (box.saved && !box.recomputed) lane += ", fillcolor=\"#ffe69a\"";
        lane += "];\n";
    }
    const bool apart = lanes.size() - lanes.count(detail::Diagram::no_lane) > 1;
    for (const auto& [lane, boxes] : lanes) {
        if (lane == detail::Diagram::no_lane || !apart) {
            dot += boxes;
            continue;
        }
        const auto number = static_cast<std::size_t>(lane);
        const std::string name = number < diagram.lanes.size() ? diagram.lanes[number] : "";
        dot +=
            "subgraph cluster_" + std::to_string(lane) + " {\nlabel=" + quoted(name) + ";\n" + boxes + "}\n";
    }
    for (std::size_t i = 0; i < diagram.boxes.size(); ++i)
        for (const auto& input : diagram.boxes[i].inputs) {
            const std::string from = "n" + std::to_string(input.from), to = "n" + std::to_string(i);
            dot += from + " -> " + to + ";\n";
            if (!input.back) continue;
            dot += to + " -> " + from +
                   " [style=dashed, constraint=false, color=\"#b3400a\", fontcolor=\"#b3400a\"";
            if (!input.gradient.empty()) dot += ", label=" + quoted(input.gradient);
            dot += "];\n";
        }
    return dot + "}\n";
}

}  // namespace tally
