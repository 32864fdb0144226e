// Checks a diagram, assigns its lanes, and writes it for Graphviz.
#include "tally/tools/diagram.hpp"

#include <algorithm>
#include <map>

#include "tally/base/error.hpp"
#include "tally/base/text.hpp"

namespace tally::detail {

namespace {

using Role = Diagram::Role;

constexpr const char* dot_styles[] = {"shape=box, peripheries=2, color=\"#0b57d0\"",
                                      "shape=box, color=\"#59636e\"", "shape=ellipse, color=\"#137333\"",
                                      "shape=hexagon, color=\"#8430ce\""};  // by role

std::string escape_dot(const std::string& text) {
    std::string result;
    for (char c : clean_text(text, 4000)) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result;
}

}  // namespace

void lanes_from_losses(Diagram& diagram) {
    require_drawable(diagram);
    auto& boxes = diagram.boxes;
    const int none_yet = -2;
    int lanes = 0;
    for (auto& box : boxes) box.lane = box.role == Role::loss ? lanes++ : none_yet;
    for (std::size_t i = boxes.size(); i-- > 0;) {
        auto& box = boxes[i];
        if (box.lane == none_yet) box.lane = Diagram::no_lane;  // leads to no loss
        for (const auto& input : box.inputs) {
            int& lane = boxes[static_cast<std::size_t>(input.from)].lane;
            if (lane != box.lane) lane = lane == none_yet ? box.lane : Diagram::no_lane;
        }
    }
}

void require_drawable(const Diagram& diagram) {
    const auto& boxes = diagram.boxes;
    require(!boxes.empty(), "picture", "the diagram has no boxes; add at least one");
    require(boxes.size() <= static_cast<std::size_t>(Diagram::max_boxes), "picture", boxes.size(),
            " boxes are too many to read; draw a part of the graph with at most ", Diagram::max_boxes);
    for (std::size_t i = 0; i < boxes.size(); ++i)
        for (const auto& input : boxes[i].inputs) {
            if (input.from >= 0 && static_cast<std::size_t>(input.from) < i) continue;
            throw Error("picture", "box ", i, " '", clean_text(boxes[i].name, 4000), "' has input ",
                        input.from, "; put each box after its inputs");
        }
}

std::string to_dot(const Diagram& diagram) {
    require_drawable(diagram);
    const auto quoted = [](const std::string& text) { return "\"" + escape_dot(text) + "\""; };
    const auto label = [](const Diagram::Box& box) {
        std::string text = escape_dot(box.name);
        if (!box.shape.empty()) text += " " + escape_dot(box.shape);
        if (box.recomputed) text += " x2";
        if (!box.value.empty() || !box.gradient.empty()) text += "\\n" + escape_dot(box.value);
        if (!box.gradient.empty()) text += " | " + escape_dot(box.gradient);
        return text;
    };
    std::string dot = "digraph tally {\n    rankdir=LR;\n    label=" + quoted(diagram.title) +
                      ";\n    labelloc=t;\n    fontname=monospace;\n    fontsize=18;\n    node "
                      "[fontname=monospace, fontsize=18, style=filled, fillcolor=white];\n"
                      "    edge [fontname=monospace, fontsize=18];\n";
    std::map<int, std::string> lanes;  // the boxes of each lane, as DOT
    for (std::size_t i = 0; i < diagram.boxes.size(); ++i) {
        const auto& box = diagram.boxes[i];
        std::string& lane = lanes[std::max(box.lane, Diagram::no_lane)];
        lane += "n" + std::to_string(i) + " [label=\"" + label(box) + "\", " +
                dot_styles[static_cast<int>(box.role)];
        if (box.recomputed) lane += ", style=\"filled,dashed\"";
        if (box.saved && !box.recomputed) lane += ", fillcolor=\"#ffe69a\"";
        lane += "];\n";
    }
    const bool apart = lanes.size() - lanes.count(Diagram::no_lane) > 1;
    for (const auto& [lane, boxes] : lanes) {
        if (lane == Diagram::no_lane || !apart) {
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

}  // namespace tally::detail
