// Draws a row of boxes for each segment of a checkpointed network. Boxes of recomputed values are dashed.
#pragma once

#include "course/kit/talk.hpp"

namespace {
// `runs` contains the number of runs of each layer. Each segment has `each` layers.
inline tally::lesson::Diagram segments_picture(const std::vector<int>& runs, std::size_t each) {
    using tally::lesson::Diagram;
    using Role = Diagram::Role;
    Diagram diagram;
    diagram.title =
        tally::lesson::say("{} layers in {} segments: the input of each is kept, and all of the last",
                           runs.size(), runs.size() / each);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const int lane = int(i / each);
        const bool ends_segment = i % each == each - 1, again = runs[i] > 1;
        const auto add = [&](Role role, const std::string& name, bool saved) -> Diagram::Box& {
            Diagram::Box box;
            box.role = role, box.name = name, box.lane = lane, box.saved = saved;
            return diagram.boxes.emplace_back(box);
        };
        if (i % each == 0) {
            diagram.lanes.push_back("segment " + std::to_string(lane + 1));
            add(Role::data, i == 0 ? "x" : "h" + std::to_string(i), true);
        }
        Diagram::Input input;
        input.from = int(diagram.boxes.size()) - 1;
        const bool saved = !again && (!ends_segment || i + 1 == runs.size());
        Diagram::Box& box = add(Role::operation, "h" + std::to_string(i + 1), saved);
        box.recomputed = again;
        box.inputs = {input};
    }
    return diagram;
}
}  // namespace
