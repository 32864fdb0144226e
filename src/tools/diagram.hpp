// A `Diagram` describes a computation graph independently of the engine, and draws the graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::detail {

struct Diagram {
    enum class Role : std::uint8_t { parameter, data, operation, loss };

    struct Input {
        int from = 0;          // the operand's index in `boxes`; the operand precedes its user
        bool back = false;     // draws a dashed arrow for a gradient along this edge
        std::string gradient;  // label of that arrow; useful where several gradients are added in one box
    };

    struct Box {
        Role role = Role::operation;
        std::string name;
        std::string shape;     // "(3)"; "" for a scalar
        std::string value;     // "" if the box has no line for a value
        std::string gradient;  // "" if the box has no line for it, "-" if no gradient has arrived yet
        int lane = 0;  // one per micro-batch, from the top; no_lane for boxes that several lanes share
        bool saved = false;
        bool recomputed = false;
        std::vector<Input> inputs;
    };

    static constexpr int no_lane = -1;
    static constexpr int max_boxes = 1000;  // a larger picture would be unreadable, so drawing throws

    std::string title;
    std::string description;         // for screen readers; "" for all texts of the picture
    std::vector<std::string> lanes;  // names of the lanes, shown if there are several
    std::vector<Box> boxes;          // in topological order
};

// Throws if the diagram has no boxes or too many boxes, or if an input comes after the box that reads it.
void require_drawable(const Diagram& diagram);
std::string to_svg(const Diagram& diagram);
std::string to_dot(const Diagram& diagram);

// Assigns each loss to its own lane. A box that leads to exactly one loss is assigned to the lane of this
// loss. All other boxes are assigned to no_lane.
void lanes_from_losses(Diagram& diagram);

}  // namespace tally::detail
